// Builds decks (slides/*.md, Marp Markdown) to HTML that needs no network: fills in code from the sources, then runs Marp.
import {spawnSync} from 'node:child_process';
import {cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {basename, dirname, join, resolve} from 'node:path';
import {fileURLToPath} from 'node:url';
import {expand} from './expand.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, '../..');
const kUsage = 'Usage: tools/slides/build [--out FOLDER] [DECK.md...]   (default: all of slides/ to build/slides)';

const args = process.argv.slice(2);
const decks = [];
let out = join(root, 'build/slides');
while (args.length) {
  const arg = args.shift();
  if (arg === '--out' && args.length) out = resolve(args.shift());
  else if (arg.startsWith('-')) { console.error(kUsage); process.exit(2); }
  else decks.push(resolve(arg));
}
const all = join(root, 'slides');
if (!decks.length) decks.push(...readdirSync(all).filter(name => name.endsWith('.md')).sort().map(name => join(all, name)));
if (!decks.length) { console.error('slides/ has no decks.'); process.exit(2); }

const work = mkdtempSync(join(tmpdir(), 'shardlings-slides.'));
let failed = false;
try {
  for (const deck of decks) {
    try {
      const text = readFileSync(deck, 'utf8');
      if (!/^---\n[\s\S]*?^marp: true$[\s\S]*?^---$/m.test(text)) throw new Error('is no Marp deck (its front matter lacks `marp: true`)');
      writeFileSync(join(work, basename(deck)), expand(text, root));
    } catch (error) {
      console.error(`${deck}: ${error.message}`);
      failed = true;
    }
  }
  if (!failed) {
    mkdirSync(out, {recursive: true});
    for (const folder of new Set(decks.map(dirname))) {  // pictures lie beside the decks or in img/
      for (const entry of readdirSync(folder, {withFileTypes: true})) {
        if (entry.name === 'img' || /\.(svg|png)$/.test(entry.name)) cpSync(join(folder, entry.name), join(out, entry.name), {recursive: true});
      }
    }
    const marp = spawnSync(process.execPath, [join(here, 'node_modules/@marp-team/marp-cli/marp-cli.js'), '--config-file', join(here, 'marp.config.mjs'),
      '--theme', join(all, 'theme.css'), '--input-dir', work, '--output', out], {encoding: 'utf8', cwd: here});
    failed = marp.status !== 0;
    if (failed) console.error(marp.stdout + marp.stderr);
    else console.log(`slides: ${decks.length} decks in ${out}`);
  }
} finally {
  rmSync(work, {recursive: true});
}
process.exit(failed ? 1 : 0);
