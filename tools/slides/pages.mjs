// What pages and decks claim, checked: links and paths exist, commands are ones that ./lab has, lessons and mutants are in
// the manifest, code shown is the code in the sources, and no prose says a lesson's number. Run by tools/gates/pages.
import {existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {dirname, join, relative, resolve} from 'node:path';
import {fileURLToPath} from 'node:url';
import {expand} from './expand.mjs';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const kFolders = ['.ci', 'cmake', 'common', 'docs', 'exercises', 'lessons', 'slides', 'solutions', 'tests', 'tools'];
const kTakesSlug = ['check', 'watch', 'hint', 'run', 'solution', 'diff', 'reset', 'report', 'trace'];
/** Written for "put yours here": nothing that could exist. */
const isPlaceholder = word => /NN_|[<>*…{}$[\]]|\b[A-Z][A-Z_]+\b(?!\.)/.test(word);

/** What the repository has, for the checks below. */
function world() {
  const usage = readFileSync(join(root, 'tools/lab/usage.txt'), 'utf8');
  const {lessons} = JSON.parse(readFileSync(join(root, 'lessons/manifest.json'), 'utf8'));
  return {
    verbs: [...usage.matchAll(/^ {2}([a-z]+)\b/gm)].map(match => match[1]),
    mutants: new Map(lessons.map(lesson => [lesson.slug, (lesson.mutants ?? []).map(mutant => mutant.name)])),
    exists: path => existsSync(join(root, path)),
  };
}

/** Headings as GitHub names them in links. */
const headingsOf = text => [...text.matchAll(/^#{1,6}\s+(.*)$/gm)].map(([, heading]) =>
  heading.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, '').replaceAll(' ', '-'));

/** Code spans and blocks of a text, and the prose that is left. Links keep their words and lose their targets. */
function parts(text) {
  const code = [];
  const keep = (_, content) => { code.push(content); return ' '; };
  const prose = text.replace(/^```[^\n]*\n([\s\S]*?)^```/gm, keep).replace(/`([^`\n]+)`/g, keep)
    .replace(/<!--[\s\S]*?-->/g, ' ').replace(/\]\([^)]*\)/g, ']').replace(/^---\n[\s\S]*?\n---$/m, ' ');
  return {code, prose};
}

/** Sentences about one page. `path` is relative to the repository. */
function faultsOf(path, text, {verbs, mutants, exists}) {
  const faults = [];
  const {code, prose} = parts(text);
  for (const [, target] of text.replace(/^```[\s\S]*?^```/gm, '').replace(/`[^`\n]+`/g, '').matchAll(/\]\(([^)\s]+)[^)]*\)/g)) {
    if (/^(https?|mailto):/.test(target)) continue;
    const [file, heading] = target.split('#');
    const linked = file ? join(dirname(path), decodeURIComponent(file)) : path;
    if (!exists(linked)) faults.push(`links to ${target}, which does not exist`);
    else if (heading && linked.endsWith('.md') && !headingsOf(file ? readFileSync(join(root, linked), 'utf8') : text).includes(heading)) {
      faults.push(`links to ${target}, but there is no such heading`);
    }
  }
  for (const piece of code) {
    for (const [word] of piece.matchAll(/(?<![\w./-])[\w.]+\/[\w./*<>{}$-]*/g)) {
      const named = word.replace(/[.,:;/]+$/, '');
      if (!kFolders.includes(named.split('/')[0]) || isPlaceholder(word)) continue;
      if (named.endsWith('answers.txt')) continue;  // the learner writes it
      if (!exists(named)) faults.push(`names ${named}, which does not exist`);
    }
    for (const [, verb, rest] of piece.matchAll(/\.\/lab +([a-zA-Z_-]+)([^\n#;&|]*)/g)) {
      if (isPlaceholder(verb) || verb.startsWith('-')) continue;
      if (!verbs.includes(verb)) { faults.push(`says ./lab ${verb}, which ./lab does not know`); continue; }
      if (!kTakesSlug.includes(verb)) continue;
      const words = rest.split(' -- ')[0].trim().split(/\s+/).filter(Boolean);
      const slugs = words.filter((word, i) => /^[a-z][a-z0-9_]*$/.test(word) && !(words[i - 1] ?? '').startsWith('-'));
      for (const slug of slugs) if (!mutants.has(slug)) faults.push(`says ./lab ${verb} ${slug}, but there is no lesson ${slug}`);
      const mutant = words[words.indexOf('--mutant') + 1];
      if (words.includes('--mutant') && mutant && !isPlaceholder(mutant) && slugs.length === 1 && !mutants.get(slugs[0])?.includes(mutant)) {
        faults.push(`says --mutant ${mutant}, but ${slugs[0]} has no such mutant`);
      }
    }
  }
  faults.push(...numbersIn(prose));
  return faults;
}

/** A lesson is known by its slug: numbers change when one is put in between. */
function numbersIn(prose) {
  const said = [...prose.matchAll(/\blessons? (?:no\.? |number |#)?\d+\b|(?<![\w/.])\d\d_[a-z][a-z0-9_]*/gi)].map(([words]) => words);
  return said.map(words => `says "${words}": name the lesson by its slug`);
}

function selfTest() {
  const faults = [];
  const fake = {verbs: ['check', 'run'], mutants: new Map([['zero1', ['own_norm']]]), exists: path => path === 'common/core/error.hpp'};
  const good = 'See [errors](common/core/error.hpp) and `common/core/error.hpp`, `./lab check zero1 --mutant own_norm`, ' +
    '`./lab check SLUG --mutant NAME`, `lessons/NN_slug/`, `./lab run zero1 -- --ranks 4`, 13 lessons, [here](https://x.org/13_a).\n';
  const found = faultsOf('README.md', good, fake);
  if (found.length) faults.push(`self-test: found in a good page: ${found.join('; ')}`);
  const bad = ['[a](gone.md)', '`common/gone.hpp`', '`./lab chekc`', '```\n./lab run zero9 -- --ranks 4\n```', '`./lab check zero1 --mutant none`',
    'as in lesson 13', 'as in 13_zero1 before', '[a](#nowhere)'];
  for (const text of bad) {
    if (text === '[a](#nowhere)' ? !faultsOf('common/core/error.hpp', text, {...fake, exists: () => false}).length : !faultsOf('README.md', text + '\n', fake).length) {
      faults.push(`self-test: nothing found in ${JSON.stringify(text)}`);
    }
  }
  const folder = mkdtempSync(join(tmpdir(), 'shardlings-pages.'));
  writeFileSync(join(folder, 'a.hpp'), 'x\n// ANCHOR: one\n  int a;\n    int b;\n// ANCHOR_END: one\n// SOLUTION BEGIN two\n  c();\n' +
    '// SOLUTION STUB LAB_TODO("c");\n// SOLUTION END\n');
  const shown = {one: 'int a;\n  int b;', two: 'c();'};
  for (const [name, body] of Object.entries(shown)) {
    const marker = `<!-- code: a.hpp#${name} -->\n`, right = marker + '```cpp\n' + body + '\n```\n';
    for (const before of [marker, marker + '```cpp\nold\n```\n', right]) {
      if (expand(before + 'text\n', folder) !== right + 'text\n') faults.push(`self-test: ${JSON.stringify(before)} is not filled in as it should be`);
    }
  }
  rmSync(folder, {recursive: true});
  return faults;
}

const list = (folder, wanted) => (existsSync(join(root, folder)) ? readdirSync(join(root, folder), {recursive: true}) : [])
  .map(name => join(folder, name)).filter(path => wanted.test(path) && !path.includes('node_modules')).sort();
const pages = ['README.md', ...list('docs', /\.md$/), ...list('lessons', /README\.md$/)].filter(path => existsSync(join(root, path)));
const decks = list('slides', /\.md$/);
const sources = ['lessons', 'solutions', 'exercises', 'common', 'tests', 'tools'].flatMap(folder => list(folder, /\.(hpp|cpp|mjs|json)$/));

const fix = process.argv.includes('--fix');
const faults = selfTest();
const facts = world();
for (const path of [...pages, ...decks]) {
  const text = readFileSync(join(root, path), 'utf8');
  for (const fault of faultsOf(path, text, facts)) faults.push(`${path} ${fault}`);
  try {
    const renewed = expand(text, root);
    if (decks.includes(path) || renewed === text) continue;  // decks are filled in when they are built
    if (fix) writeFileSync(join(root, path), renewed);
    else faults.push(`${path} shows code that has changed since: tools/gates/pages --fix renews it`);
  } catch (error) {
    faults.push(`${path}: ${error.message}`);
  }
}
for (const path of sources) {
  if (relative('tools/slides', path) === 'pages.mjs') continue;  // its own self-test says such numbers
  for (const [, comment] of readFileSync(join(root, path), 'utf8').matchAll(/(?:\/\/|")(.*)/g)) {
    const said = comment.match(/\blessons? (?:no\.? |number |#)?\d+\b/i);
    if (said) faults.push(`${path} says "${said[0]}": name the lesson by its slug`);
  }
}
faults.forEach(fault => console.error(fault));
console.log(`pages: ${pages.length} pages, ${decks.length} decks and ${sources.length} sources checked; ${faults.length} faults`);
process.exit(faults.length ? 1 : 0);
