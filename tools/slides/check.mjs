// Opens built decks in headless Chromium and names every frame that a reader could not read: content that sticks out,
// code or tables cut off, pictures that are missing, frames with nothing on them. See the usage below.
import {spawnSync} from 'node:child_process';
import {existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {basename, dirname, join, resolve} from 'node:path';
import {fileURLToPath, pathToFileURL} from 'node:url';
import {Browser} from '../browser/browser.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const kUsage = `Usage: tools/slides/check [--screenshots FOLDER] [--self-test] [DECK.html...]
Checks built decks (default: all of build/slides). --screenshots keeps a picture of each deck; --self-test also builds a deck
whose faults must be found. Exit code 0: all good, 1: faults, 2: wrong use.`;

/** In the page: lays all frames below one another; returns how many there are. */
function unfold() {
  const style = document.createElement('style');
  style.textContent = `html, body, div { overflow: visible !important; height: auto !important; position: static !important; display: block !important; }
    svg[data-marpit-svg] { position: static !important; display: block !important; visibility: visible !important; opacity: 1 !important;
      width: 1280px !important; height: 720px !important; margin-bottom: 8px; content-visibility: visible !important; }
    .bespoke-marp-osc, .bespoke-progress-parent, .bespoke-marp-note { display: none !important; }`;
  document.head.append(style);
  return document.querySelectorAll('svg[data-marpit-svg]').length;
}

/** In the page: what is wrong with each frame. */
function faultsOfFrames() {
  const faults = [];
  document.querySelectorAll('svg[data-marpit-svg]').forEach((frame, index) => {
    const sections = [...frame.querySelectorAll('section')].filter(section => section.dataset.marpitAdvancedBackground !== 'background');
    for (const section of sections) {
      if (section.dataset.marpitAdvancedBackground === 'pseudo') continue;
      const title = section.querySelector('h1, h2, h3')?.textContent.trim() ?? 'without a title';
      const say = what => faults.push(`frame ${index + 1} (${title}): ${what}`);
      const page = section.getBoundingClientRect();
      const scale = page.width / section.offsetWidth || 1;
      if (!section.textContent.trim() && !section.querySelector('img, svg')) say('is empty');
      const out = {down: 0, right: 0, up: 0, left: 0};
      for (const element of section.querySelectorAll('*')) {
        if (element.closest('mjx-assistive-mml, header, footer, defs') || ['STYLE', 'BR'].includes(element.tagName)) continue;
        const drawing = element.closest('svg');
        if (drawing !== frame && drawing !== element) continue;  // inside a picture
        const box = element.getBoundingClientRect();
        if (!box.width || !box.height) continue;
        out.down = Math.max(out.down, box.bottom - page.bottom);
        out.right = Math.max(out.right, box.right - page.right);
        out.up = Math.max(out.up, page.top - box.top);
        out.left = Math.max(out.left, page.left - box.left);
      }
      for (const element of section.querySelectorAll('pre, code, table, p, li')) {  // text that is wider than its box
        if (getComputedStyle(element).display === 'inline') continue;
        const more = element.scrollWidth - element.clientWidth;
        const box = element.getBoundingClientRect();
        if (more > 1) out.right = Math.max(out.right, (box.left - page.left) / scale + element.scrollWidth - section.offsetWidth + 24);
      }
      for (const [side, pixels] of Object.entries(out)) {
        if (pixels / scale > 1) say(`sticks out ${Math.ceil(pixels / scale)} pixels (${side})`);
      }
      if (section.scrollHeight > section.clientHeight + 1 && out.down <= 0) say(`needs ${section.scrollHeight} of ${section.clientHeight} pixels`);
      for (const image of section.querySelectorAll('img')) {
        if (image.complete && !image.naturalWidth) say(`the picture ${image.getAttribute('src')} is missing`);
      }
    }
  });
  return faults;
}

async function faultsOf(browser, file, folder) {
  try {
    await browser.open(pathToFileURL(resolve(file)).href, {width: 1280, height: 728});
    const frames = await browser.evaluate(unfold);
    const faults = frames ? await browser.evaluate(faultsOfFrames) : ['has no frames'];
    const missing = faults.some(fault => fault.includes('is missing'));
    faults.push(...browser.complaints.filter(complaint => !(missing && complaint.includes('ERR_FILE_NOT_FOUND'))));
    if (folder) writeFileSync(join(folder, basename(file, '.html') + '.png'), Buffer.from(await browser.screenshot(), 'base64'));
    return faults.map(fault => `${basename(file)}: ${fault}`);
  } catch (error) {
    return [`${basename(file)}: ${error.message}`];
  }
}

const kBroken = `---
marp: true
---
# Good
---
## Too long
${Array.from({length: 30}, (_, i) => `- line ${i}`).join('\n')}
---
## Too wide
\`\`\`cpp
auto x = ${'very_long_name + '.repeat(10)}0;
\`\`\`
---
## No picture
![](not_there.svg)

---
## Good too
One sentence and a formula, $x^2$.

---
`;
const kExpected = [/frame 2 \(Too long\): sticks out \d+ pixels \(down\)/, /frame 3 \(Too wide\): sticks out \d+ pixels \(right\)/,
  /frame 4 \(No picture\): the picture not_there.svg is missing/, /frame 6 \(without a title\): is empty/];

async function selfTest(browser) {
  const folder = mkdtempSync(join(tmpdir(), 'shardlings-deck.'));
  try {
    writeFileSync(join(folder, 'broken.md'), kBroken);
    const built = spawnSync(join(here, 'build'), ['--out', join(folder, 'out'), join(folder, 'broken.md')], {encoding: 'utf8'});
    if (built.status !== 0) return [`self-test: the deck was not built: ${built.stderr}`];
    const found = await faultsOf(browser, join(folder, 'out/broken.html'), null);
    const missed = kExpected.filter(expected => !found.some(fault => expected.test(fault)));
    const invented = found.filter(fault => !kExpected.some(expected => expected.test(fault)));
    return [...missed.map(expected => `self-test: not found: ${expected.source}`), ...invented.map(fault => `self-test: found, but is none: ${fault}`)];
  } finally {
    rmSync(folder, {recursive: true});
  }
}

const args = process.argv.slice(2);
const files = [];
let folder = null, testItself = false;
while (args.length) {
  const arg = args.shift();
  if (arg === '--screenshots' && args.length) folder = args.shift();
  else if (arg === '--self-test') testItself = true;
  else if (arg.startsWith('-')) { console.error(kUsage); process.exit(2); }
  else files.push(arg);
}
const built = resolve(here, '../../build/slides');
if (!files.length && existsSync(built)) files.push(...readdirSync(built).filter(name => name.endsWith('.html')).map(name => join(built, name)));
if (!files.length && !testItself) { console.error('No decks: run tools/slides/build first.'); process.exit(2); }
if (folder) mkdirSync(folder, {recursive: true});
const browser = await Browser.start();
const faults = [];
try {
  for (const file of files) faults.push(...await faultsOf(browser, file, folder));
  if (testItself) faults.push(...await selfTest(browser));
} finally {
  await browser.stop();
}
faults.forEach(fault => console.error(fault));
console.log(`slides: ${files.length} decks checked${testItself ? ', and one whose faults must be found' : ''}; ${faults.length} faults`);
process.exit(faults.length ? 1 : 0);
