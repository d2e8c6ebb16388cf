// Opens reports in headless Chromium and checks that a reader would see something: no complaints on the console, nothing
// fetched, every chart drawn with every line and block in its color, a page that is not blank and fits its window, in
// light and dark, wide and narrow. See the usage below.
import {mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {basename, join, resolve} from 'node:path';
import {pathToFileURL} from 'node:url';
import {Browser} from './browser.mjs';

const kUsage = `Usage: tools/browser/check_report [--screenshots FOLDER] [--self-test] FILE.html...
Checks report pages. --screenshots keeps pictures of them; --self-test also breaks copies of the first page in ways that
must be caught. Exit code 0: all good, 1: a page is broken, 2: wrong use.`;
const kViews = [
  {name: 'light', width: 1360, height: 900, dark: false},
  {name: 'dark', width: 1360, height: 900, dark: true},
  {name: 'narrow', width: 420, height: 900, dark: false},
];

/** In the page: what is wrong with its charts, as sentences. A chart whose axes are there and whose data is not counts as blank. */
function faultsOfCharts() {
  const faults = [];
  if (typeof echarts === 'undefined') {
    if (!document.body.textContent.includes('The chart library')) faults.push('has no chart library and does not say so');
    return faults;
  }
  const near = (data, at, [r, g, b]) => Math.abs(data[at] - r) + Math.abs(data[at + 1] - g) + Math.abs(data[at + 2] - b) < 40 && data[at + 3] > 200;
  for (const [id, {chart}] of charts) {
    const canvas = chart.getDom().querySelector('canvas');
    if (!canvas || !canvas.width) { faults.push(`chart ${id} has no canvas`); continue; }
    for (const series of chart.getModel().getSeries()) {
      const data = series.getData();
      // What is smaller than two pixels, or zero, nobody can be asked to see.
      const area = series.coordinateSystem.getArea();
      const [low, high] = series.coordinateSystem.getAxis('y').scale.getExtent();
      const [from, to] = series.coordinateSystem.getAxis('x').scale.getExtent();
      const pixelsOf = i => {
        if (series.subType === 'custom') {  // a block, of which the zoom may show a part
          const [begin, end] = [1, 2].map(dimension => data.get(data.getDimension(dimension), i));
          return (Math.min(end, to) - Math.max(begin, from)) / (to - from) * area.width;
        }
        const value = data.get(data.mapDimension('y'), i);
        return series.get('stack') ? value / (high - low) * area.height : Number.isFinite(value) ? 2 : 0;
      };
      if (![...Array(data.count()).keys()].some(i => pixelsOf(i) >= 2)) continue;
      const fill = data.getVisual('style').fill ?? data.getVisual('style').stroke;
      const color = echarts.color.parse(fill).slice(0, 3);
      const scale = canvas.width / chart.getWidth();
      const pixels = canvas.getContext('2d').getImageData(area.x * scale, area.y * scale, area.width * scale, area.height * scale).data;
      let drawn = 0;
      for (let at = 0; at < pixels.length; at += 4) drawn += near(pixels, at, color);
      if (drawn < 4) faults.push(`chart ${id}: "${series.name}" has data but is not drawn`);
    }
  }
  const expected = ['loss', 'timeline', 'memory'].filter(id =>
    ({loss: D.loss.length, timeline: D.timeline.blocks.length, memory: D.memory.ranks.some(r => r.samples.length)})[id]);
  for (const id of expected) if (!charts.has(id)) faults.push(`chart ${id} is missing`);
  return faults;
}

/** In the page: the share of the most common color of a picture. 1 is blank. */
async function shareOfOneColor(png) {
  const image = new Image();
  image.src = 'data:image/png;base64,' + png;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext('2d');
  context.drawImage(image, 0, 0);
  const pixels = new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer);
  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  return Math.max(...counts.values()) / pixels.length;
}

/** In the page: things that stick out of the window. */
function overflow() {
  const width = document.documentElement.scrollWidth;
  return width > innerWidth ? [`is ${width} pixels wide in a window of ${innerWidth}`] : [];
}

async function faultsOf(browser, file, folder, views = kViews) {
  const faults = [];
  for (const view of views) {
    const say = what => faults.push(`${file} (${view.name}): ${what}`);
    try {
      await browser.open(pathToFileURL(resolve(file)).href, view);
      browser.complaints.forEach(say);
      (await browser.evaluate(faultsOfCharts)).forEach(say);
      (await browser.evaluate(overflow)).forEach(say);
      const png = await browser.screenshot();
      if (folder) writeFileSync(join(folder, `${basename(file, '.html')}-${view.name}.png`), Buffer.from(png, 'base64'));
      const share = await browser.evaluate(shareOfOneColor, png);
      if (share > 0.995) say(`is blank: ${(100 * share).toFixed(1)} % is one color`);
    } catch (error) {
      say(error.message);
    }
  }
  return faults;
}

/** Each way to break a page, and what must then be said. A check that finds nothing in these is itself broken. */
const kSabotage = [
  ['an exception', page => page.replace("'use strict';", "'use strict'; setTimeout(() => { throw new Error('sabotage'); }, 0);"), /exception/],
  ['a blank timeline', page => page.replace('if (!rect) return null;', 'return null;'), /chart timeline: .* not drawn/],
  ['lines that cannot be seen', page => page.replace('lineStyle: {width: c', 'itemStyle: {opacity: 0}, lineStyle: {opacity: 0, width: c'),
    /chart loss: .* not drawn/],
  ['a picture from the network', page => page.replace('<main>', '<main><img src="http://127.0.0.1:9/x.png" alt="">'), /asks the network/],
  ['a blank page', page => page.replace('<main>', '<main style="display:none">'), /blank|not drawn|no canvas/],
  ['a table too wide', page => page.replace('<main>', '<main><div style="width:3000px">x</div>'), /pixels wide/],
];

async function selfTest(browser, file) {
  const faults = [];
  const folder = mkdtempSync(join(tmpdir(), 'shardlings-report.'));
  const page = readFileSync(file, 'utf8');
  for (const [what, sabotage, expected] of kSabotage) {
    const broken = sabotage(page);
    const copy = join(folder, 'broken.html');
    writeFileSync(copy, broken);
    const found = await faultsOf(browser, copy, null, kViews.slice(0, 1));
    if (broken === page) faults.push(`self-test: ${what}: the page has changed, and is not broken by this any more`);
    else if (!found.some(fault => expected.test(fault))) faults.push(`self-test: ${what} was not caught; said: ${found.join('; ') || 'nothing'}`);
  }
  rmSync(folder, {recursive: true});
  return faults;
}

const args = process.argv.slice(2);
const files = [];
let folder = null, testItself = false;
while (args.length) {
  const arg = args.shift();
  if (arg === '--screenshots') folder = args.shift();
  else if (arg === '--self-test') testItself = true;
  else if (arg.startsWith('-')) { console.error(kUsage); process.exit(2); }
  else files.push(arg);
}
if (!files.length) { console.error(kUsage); process.exit(2); }
if (folder) mkdirSync(folder, {recursive: true});
const browser = await Browser.start();
const faults = [];
try {
  for (const file of files) faults.push(...await faultsOf(browser, file, folder));
  if (testItself) faults.push(...await selfTest(browser, files[0]));
} finally {
  await browser.stop();
}
faults.forEach(fault => console.error(fault));
console.log(`check_report: ${files.length} pages${testItself ? ` and ${kSabotage.length} broken copies` : ''}, ${faults.length} faults`);
process.exit(faults.length ? 1 : 0);
