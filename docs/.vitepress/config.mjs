/**
 * The pages that a server shows at /docs: README.md and its like, and everything in docs/. The sidebar is the list in
 * docs/README.md. Broken links and pages that the list leaves out fail the build.
 */
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join, posix, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transformerStyleToClass } from '@shikijs/transformers';

const root = fileURLToPath(new URL('../..', import.meta.url));
const outDir = join(root, 'dist/site');

/** By the Markdown file, relative to the root: the file of the site that it becomes. */
const pages = {
  'README.md': 'index.md',
  'SECURITY.md': 'security.md',
  'CONTRIBUTING.md': 'contributing.md',
  'CHANGELOG.md': 'changes.md',
  ...Object.fromEntries(
    readdirSync(join(root, 'docs'), { recursive: true })
      .filter((path) => path.endsWith('.md'))
      .map((path) => [`docs/${path}`, path.replace(/README\.md$/, 'contents.md')]),
  ),
};
const addressOf = (file) => `/${pages[file].replace(/(?:index)?\.md$/, '')}`;

/** The headings and links of docs/README.md. */
function sidebar() {
  const groups = [];
  let links;
  for (const line of readFileSync(join(root, 'docs/README.md'), 'utf8').split('\n')) {
    const [, depth, heading] = /^(###?) (.+)$/.exec(line) ?? [];
    const [, text, path, fragment] = /^- \[(.+)\]\(([^)#]+)(#.*)?\)$/.exec(line) ?? [];
    if (heading) {
      links = [];
      const group = { text: heading, collapsed: depth === '###', items: links };
      if (depth === '##') groups.push(group);
      else groups.at(-1).items.push(group);
    } else if (text) links.push({ text, link: addressOf(posix.join('docs', path)) + (fragment ?? '') });
  }
  // Swagger UI is a page of its own: the site must not try to show it.
  const api = { text: 'HTTP API (Swagger UI)', link: '/api', target: '_self' };
  groups.find(({ text }) => text === 'Reference').items.unshift(api);
  const listed = JSON.stringify(groups);
  const missing = Object.keys(pages).filter(
    (file) => !/^docs\/(?:README|adr\/\d+-.*)\.md$/.test(file) && !listed.includes(`"${addressOf(file)}`),
  );
  if (missing.length > 0) throw new Error(`pages that docs/README.md does not list: ${missing.join(', ')}`);
  return groups;
}

/** The ids that GitHub gives to headings, so that a link leads to the same place there and here. */
const slugify = (text) =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-');

/** Leads links between files of the repository to their pages, and leaves the text of links to other files. */
function linkPages(markdown) {
  markdown.core.ruler.push('link-pages', ({ tokens, env }) => {
    const from = relative(root, env.realPath ?? env.path);
    for (const { children } of tokens) {
      let isLinked = true;
      for (const token of children ?? []) {
        // Vue would take `{{.OtpCode}}` for an expression.
        if (token.type === 'code_inline') token.attrSet('v-pre', '');
        if (token.type === 'link_open') {
          const [path, fragment] = token.attrGet('href').split('#');
          isLinked = path === '' || /^[a-z]+:/i.test(path);
          if (isLinked) continue;
          const to = posix.join(dirname(from), path);
          if (to in pages) {
            isLinked = true;
            token.attrSet('href', addressOf(to) + (fragment ? `#${fragment}` : ''));
          }
        }
        if (!isLinked && /^link_/.test(token.type)) Object.assign(token, { type: 'text', content: '' });
      }
    }
  });
}

const styles = transformerStyleToClass();

export default {
  title: 'Countersign',
  description: 'Open, self-hostable, event-sourced coordinator for signed activities',
  lang: 'en-GB',
  base: '/docs/',
  srcDir: root,
  srcExclude: ['!(docs)/**/*.md'],
  rewrites: pages,
  outDir,
  cacheDir: join(root, 'dist/.vitepress'),
  cleanUrls: true,
  ignoreDeadLinks: 'localhostLinks',
  metaChunk: true,
  head: [
    ['link', { rel: 'icon', href: '/docs/icon.svg' }],
    ['link', { rel: 'stylesheet', href: '/docs/code.css' }],
  ],
  markdown: {
    anchor: { slugify },
    attrs: { disable: true },
    languageAlias: { cjs: 'js', mjs: 'js' },
    codeTransformers: [styles],
    config: linkPages,
  },
  vite: { publicDir: join(root, 'docs/.vitepress/public'), build: { chunkSizeWarningLimit: 4_000 } },
  themeConfig: {
    sidebar: sidebar(),
    outline: [2, 3],
    search: { provider: 'local' },
  },
  /** Scripts become files, so that the Content-Security-Policy of a server need not allow any inline script. */
  transformHtml: (html) =>
    html.replace(/<script id="([\w-]+)">([^]*?)<\/script>/g, (_, id, script) => {
      writeFileSync(join(outDir, `${id}.js`), script);
      return `<script src="/docs/${id}.js"></script>`;
    }),
  buildEnd() {
    writeFileSync(join(outDir, 'code.css'), styles.getCSS());
  },
};
