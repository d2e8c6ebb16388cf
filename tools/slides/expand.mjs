// Code on pages and slides comes from files that compile. A marker on a line of its own
//   <!-- code: path/to/file.hpp#name -->      the text between `// ANCHOR: name` and `// ANCHOR_END: name` in that file, or
//                                             between `// SOLUTION BEGIN name` and `// SOLUTION END`
//   <!-- diff: slug_a slug_b lines=16 -->     what the second lesson's solution adds to and takes from the first one's
// stands above its code block. expand() writes or renews the block: decks when they are built, pages with
// `tools/gates/pages --fix` (a gate says when a block is out of date).
import {spawnSync} from 'node:child_process';
import {existsSync, readdirSync, readFileSync} from 'node:fs';
import {join} from 'node:path';

const kMarker = /^<!-- (code|diff): (.+?) -->\n(?:(`{3,})[^\n]*\n[\s\S]*?\n?^\3\n)?/gm;
const kLanguages = {hpp: 'cpp', cpp: 'cpp', cuh: 'cpp', cu: 'cpp', sh: 'sh', json: 'json', cmake: 'cmake'};

/** Lines without the indentation that they all share, and without blank ends. */
function dedented(lines) {
  const filled = lines.filter(line => line.trim());
  const shared = Math.min(...filled.map(line => line.match(/^ */)[0].length));
  return lines.map(line => line.slice(shared)).join('\n').replace(/^\n+|\s+$/g, '');
}

/** The region of a file; throws a sentence when the file or the region is not there. */
export function region(root, path, name) {
  if (!existsSync(join(root, path))) throw new Error(`${path} does not exist`);
  const lines = readFileSync(join(root, path), 'utf8').split('\n');
  const find = (from, ...wanted) => lines.findIndex((line, i) => i >= from && wanted.includes(line.trim().replace(/^(\/\/|#)\s*/, '')));
  const begin = find(0, `ANCHOR: ${name}`, `SOLUTION BEGIN ${name}`);
  if (begin < 0) throw new Error(`${path} has no region ${name} (// ANCHOR: ${name} or // SOLUTION BEGIN ${name})`);
  const end = find(begin, `ANCHOR_END: ${name}`, 'SOLUTION END');
  if (end < 0) throw new Error(`${path}: region ${name} has no end`);
  const body = lines.slice(begin + 1, end).filter(line => !/^\s*\/\/ (SOLUTION|ANCHOR)/.test(line));
  if (!body.some(line => line.trim())) throw new Error(`${path}: region ${name} is empty`);
  return dedented(body);
}

function solutionOf(root, slug) {
  const folder = readdirSync(join(root, 'solutions')).find(name => name.replace(/^\d+_/, '') === slug);
  if (!folder) throw new Error(`there is no solution of the lesson ${slug}`);
  return join(root, 'solutions', folder);
}

function difference(root, a, b, most) {
  const {stdout, status, stderr} = spawnSync('diff', ['-rNU0', solutionOf(root, a), solutionOf(root, b)], {encoding: 'utf8'});
  if (status > 1) throw new Error(`diff: ${stderr}`);
  const lines = stdout.split('\n').filter(line => /^[+-](?![+-]{2} )/.test(line) && !/^[+-]\s*(\/\/.*)?$/.test(line));
  if (!lines.length) throw new Error(`the solutions of ${a} and ${b} do not differ`);
  const more = lines.length - most;
  return [...lines.slice(0, most), ...(more > 0 ? [`  … and ${more} more lines`] : [])].join('\n');
}

/** The text with every marker's block as it must be. `root` is the repository. Throws a sentence for a marker that cannot be filled. */
export function expand(text, root) {
  return text.replace(kMarker, (_, kind, what) => {
    const marker = `<!-- ${kind}: ${what} -->`;
    if (kind === 'code') {
      const [, path, name] = what.match(/^(\S+)#(\S+)$/) ?? (() => { throw new Error(`${marker}: write path#name`); })();
      return `${marker}\n\`\`\`${kLanguages[path.split('.').at(-1)] ?? ''}\n${region(root, path, name)}\n\`\`\`\n`;
    }
    const [, a, b, most] = what.match(/^(\w+) (\w+)(?: lines=(\d+))?$/) ?? (() => { throw new Error(`${marker}: write two slugs`); })();
    return `${marker}\n\`\`\`diff\n${difference(root, a, b, Number(most ?? 16))}\n\`\`\`\n`;
  });
}
