/** The search of the docs: an index from this server, asked in the browser. */
import MiniSearch from './minisearch.js';

const options = { fields: ['title', 'text'], storeFields: ['title', 'page', 'address'] };
const [field, list] = ['search', 'found'].map((id) => document.getElementById(id));
let loading;

async function show() {
  loading ??= fetch('/docs/search.json').then(async (answer) => MiniSearch.loadJSON(await answer.text(), options));
  const index = await loading;
  const found = index
    .search(field.value, { prefix: true, fuzzy: 0.1, combineWith: 'AND', boost: { title: 3 } })
    .slice(0, 12);
  list.replaceChildren(
    ...found.map(({ title, page, address }) => {
      const link = Object.assign(document.createElement('a'), { href: address, textContent: title });
      const item = document.createElement('li');
      item.append(link, title === page ? '' : ` (${page})`);
      return item;
    }),
  );
}

field.addEventListener('input', () => void show());
field.form.addEventListener('submit', (event) => {
  event.preventDefault();
  list.querySelector('a')?.click();
});
