/**
 * Makes the pages that a server shows at /docs out of the Markdown in docs/, with a search that works offline: `dist/site`.
 * A broken link between pages fails it.
 */
import './no-arguments.mjs';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import MarkdownIt from 'markdown-it';
import MiniSearch from 'minisearch';

const root = fileURLToPath(new URL('..', import.meta.url));
const site = join(root, 'dist/site');
const roots = {
  'README.md': 'start',
  'SECURITY.md': 'security',
  'CONTRIBUTING.md': 'contributing',
  'CHANGELOG.md': 'changes',
};
const sections = { '': 'Countersign', 'how-to': 'How to', reference: 'Reference', adr: 'Decisions' };

const inDocs = readdirSync(join(root, 'docs'), { recursive: true }).filter((path) => path.endsWith('.md'));
/** By the Markdown file, relative to the root: its address below /docs/. */
const pages = new Map([
  ...Object.entries(roots),
  ...inDocs.sort().map((path) => [`docs/${path}`, path.replace(/\.md$/, '').replace(/README$/, 'contents')]),
]);

const slugOf = (text) =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-');
const escaped = (text) =>
  text.replace(/[&<>"]/g, (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[sign]);
const textOf = ({ children, content }) =>
  children
    ? children
        .filter(({ type }) => type === 'text' || type === 'code_inline')
        .map((one) => one.content)
        .join('')
    : content;

/** Tokens of a page: headings have anchors, links lead to pages of the site, nothing has a style of its own. */
function read(file) {
  const markdown = new MarkdownIt({ html: false, linkify: false });
  const tokens = markdown.parse(readFileSync(join(root, file), 'utf8'), {});
  const slugs = new Map();
  const parts = [{ id: '', title: '', text: '' }];
  const links = [];
  for (const [index, token] of tokens.entries()) {
    token.attrs = token.attrs?.filter(([name]) => name !== 'style') ?? null;
    if (token.type === 'heading_open') {
      const title = textOf(tokens[index + 1]);
      const slug = slugOf(title);
      const count = slugs.get(slug) ?? 0;
      slugs.set(slug, count + 1);
      const id = count === 0 ? slug : `${slug}-${count}`;
      token.attrSet('id', id);
      parts.push({ id, title, text: '' });
    } else if (token.type === 'inline' || token.type === 'fence') parts.at(-1).text += ` ${textOf(token)}`;
    for (const child of token.children ?? []) {
      const attribute = { link_open: 'href', image: 'src' }[child.type];
      const target = attribute && child.attrGet(attribute);
      if (!target || /^[a-z]+:/i.test(target)) continue;
      const [path, fragment] = target.split('#');
      const to = path === '' ? file : relative(root, resolve(root, dirname(file), path));
      if (pages.has(to)) {
        links.push({ to, fragment });
        child.attrSet(attribute, `/docs/${pages.get(to)}${fragment ? `#${fragment}` : ''}`);
      } else if (to.startsWith('docs/images/')) child.attrSet(attribute, `/docs/${to.slice('docs/'.length)}`);
      // A file of the repository that is no page: its name is enough.
      else if (child.type === 'link_open') child.attrSet(attribute, '/docs/contents-of-repository');
    }
  }
  const [, first] = parts;
  return {
    file,
    address: pages.get(file),
    title: first?.title ?? file,
    ids: new Set(parts.map(({ id }) => id)),
    parts,
    links,
    markdown,
    tokens,
  };
}

const everything = [...pages.keys()].map(read);
const byFile = new Map(everything.map((page) => [page.file, page]));
const broken = everything.flatMap(({ file, links }) =>
  links
    .filter(({ to, fragment }) => fragment && !byFile.get(to).ids.has(fragment))
    .map(({ to, fragment }) => `${file}: ${to}#${fragment}`),
);
if (broken.length > 0) throw new Error(`links lead nowhere:\n${broken.join('\n')}`);

const navigation = Object.entries(sections)
  .map(([folder, name]) => {
    const ofFolder = everything.filter(({ address }) => (address.includes('/') ? dirname(address) : '') === folder);
    const items = ofFolder.map(({ address, title }) => `<li><a href="/docs/${address}">${escaped(title)}</a></li>`);
    const list = `<ul>${folder === '' ? '<li><a href="/docs/api">The HTTP API (Swagger UI)</a></li>' : ''}${items.join('')}</ul>`;
    return folder === 'adr' ? `<details><summary>${name}</summary>${list}</details>` : `<h2>${name}</h2>${list}`;
  })
  .join('');

const frame = (title, body) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)} · Countersign</title>
<link rel="icon" href="/docs/icon.svg"><link rel="stylesheet" href="/docs/site.css"><script type="module" src="/docs/search.js"></script>
</head>
<body>
<nav><p><a href="/docs">Countersign</a></p>
<form role="search" action="/docs"><input id="search" type="search" placeholder="Search the docs" aria-label="Search the docs" autocomplete="off"></form>
<ol id="found" aria-live="polite"></ol>${navigation}</nav>
<main>${body}</main>
</body>
</html>
`;

rmSync(site, { recursive: true, force: true });
mkdirSync(site, { recursive: true });
const index = new MiniSearch({ fields: ['title', 'text'], storeFields: ['title', 'page', 'address'] });
for (const { address, title, parts, markdown, tokens } of everything) {
  const path = join(site, `${address}.html`);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, frame(title, markdown.renderer.render(tokens, markdown.options, {})));
  for (const { id, title: heading, text } of parts) {
    if (heading === '' && text.trim() === '') continue;
    index.add({
      id: `${address}#${id}`,
      title: heading || title,
      page: title,
      address: `/docs/${address}${id ? `#${id}` : ''}`,
      text,
    });
  }
}
const elsewhere =
  '<h1>A file of the repository</h1><p>This link leads to a file of the source code, which a server does not show.</p>';
writeFileSync(join(site, 'contents-of-repository.html'), frame('A file of the repository', elsewhere));
cpSync(join(site, 'start.html'), join(site, 'index.html'));
cpSync(join(root, 'docs/images'), join(site, 'images'), { recursive: true });
writeFileSync(join(site, 'search.json'), JSON.stringify(index));
const minisearch = dirname(createRequire(import.meta.url).resolve('minisearch'));
cpSync(join(minisearch, '../es/index.js'), join(site, 'minisearch.js'));
for (const file of ['search.js', 'site.css', 'icon.svg']) cpSync(join(root, 'scripts/site', file), join(site, file));
console.log(`${everything.length} pages written to dist/site`);
