// Headless Chromium, driven through its debugging pipe: no package needed. Used by the checks of reports and slides.
import {spawn} from 'node:child_process';
import {existsSync, mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

/** The browser's path: $CHROMIUM, or one of the usual places; null when there is none. */
export function findBrowser() {
  const usual = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome', '/snap/bin/chromium'];
  return [process.env.CHROMIUM, ...usual].find(path => path && existsSync(path)) ?? null;
}

/** One browser with one page. Messages are JSON, ended by a zero byte, on file descriptors 3 and 4. */
export class Browser {
  static async start() {
    const path = findBrowser();
    if (!path) throw new Error('No Chromium found: install the package chromium, or set CHROMIUM to its path.');
    const browser = new Browser();
    browser.profile = mkdtempSync(join(tmpdir(), 'shardlings-browser.'));
    browser.process = spawn(path, ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
      '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage',
      '--hide-scrollbars', '--allow-file-access-from-files', '--remote-debugging-pipe', `--user-data-dir=${browser.profile}`, 'about:blank'],
      {stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe']});
    browser.ended = new Promise(resolve => browser.process.once('exit', resolve));
    browser.process.once('error', error => browser.#failAll(error));
    browser.ended.then(code => browser.#failAll(new Error(`the browser has ended with code ${code}`)));
    let text = '';
    browser.process.stdio[4].setEncoding('utf8').on('data', chunk => {
      const parts = (text + chunk).split('\0');
      text = parts.pop();
      parts.forEach(part => browser.#receive(JSON.parse(part)));
    });
    const {targetInfos} = await browser.send('Target.getTargets', {}, false);
    const {targetId} = targetInfos.find(target => target.type === 'page');
    browser.session = (await browser.send('Target.attachToTarget', {targetId, flatten: true}, false)).sessionId;
    for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await browser.send(`${domain}.enable`);
    return browser;
  }

  /** What the page complained about since open(): exceptions, console errors and warnings, requests to a network. */
  complaints = [];
  #next = 1;
  #waiting = new Map();
  #listeners = [];

  #failAll(error) {
    for (const {reject} of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }

  #receive({id, method, params, result, error}) {
    if (id) {
      const {resolve, reject} = this.#waiting.get(id) ?? {};
      this.#waiting.delete(id);
      if (error) reject?.(new Error(error.message));
      else resolve?.(result);
      return;
    }
    if (method === 'Runtime.exceptionThrown') {
      const {text, exception, lineNumber} = params.exceptionDetails;
      this.complaints.push(`exception: ${exception?.description ?? text} (line ${lineNumber + 1})`);
    } else if (method === 'Runtime.consoleAPICalled' && ['error', 'warning', 'assert'].includes(params.type)) {
      this.complaints.push(`console ${params.type}: ${params.args.map(a => a.value ?? a.description).join(' ')}`);
    } else if (method === 'Log.entryAdded' && ['error', 'warning'].includes(params.entry.level)) {
      this.complaints.push(`${params.entry.level}: ${params.entry.text} ${params.entry.url ?? ''}`);
    } else if (method === 'Network.requestWillBeSent' && !/^(file|data|blob|about):/.test(params.request.url)) {
      this.complaints.push(`asks the network for ${params.request.url}`);
    }
    this.#listeners = this.#listeners.filter(listener => !(listener.method === method && (listener.resolve(), true)));
  }

  send(method, params = {}, inSession = true) {
    const id = this.#next++;
    const message = {id, method, params, ...(inSession ? {sessionId: this.session} : {})};
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, {resolve, reject});
      this.process.stdio[3].write(JSON.stringify(message) + '\0');
    });
  }

  #event(method, seconds) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no ${method} within ${seconds} s`)), seconds * 1000);
      this.#listeners.push({method, resolve: () => { clearTimeout(timer); resolve(); }});
    });
  }

  /** Loads a page; returns when it has loaded and drawn once. Width and height in CSS pixels. */
  async open(url, {width = 1360, height = 900, dark = false} = {}) {
    this.complaints = [];
    await this.send('Emulation.setDeviceMetricsOverride', {width, height, deviceScaleFactor: 1, mobile: false});
    await this.send('Emulation.setEmulatedMedia', {features: [{name: 'prefers-color-scheme', value: dark ? 'dark' : 'light'}]});
    const loaded = this.#event('Page.loadEventFired', 30);
    const {errorText} = await this.send('Page.navigate', {url});
    if (errorText) throw new Error(`${url}: ${errorText}`);
    await loaded;
    await this.evaluate(() => document.fonts.ready.then(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))));
  }

  /** Runs a function in the page and returns its (JSON) result. */
  async evaluate(body, ...args) {
    const expression = `(${body})(${args.map(arg => JSON.stringify(arg)).join(', ')})`;
    const {result, exceptionDetails} = await this.send('Runtime.evaluate', {expression, awaitPromise: true, returnByValue: true});
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value === undefined ? undefined : JSON.parse(JSON.stringify(result.value));
  }

  /** PNG of the whole page, base64. */
  async screenshot() {
    const {cssContentSize: {width, height}} = await this.send('Page.getLayoutMetrics');
    const clip = {x: 0, y: 0, width, height: Math.min(height, 8000), scale: 1};
    return (await this.send('Page.captureScreenshot', {format: 'png', captureBeyondViewport: true, clip})).data;
  }

  async stop() {
    this.process.stdio[3].end();
    this.process.kill();
    await this.ended;
    rmSync(this.profile, {recursive: true, force: true, maxRetries: 5});
  }
}
