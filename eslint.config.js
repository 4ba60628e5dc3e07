import tseslint from 'typescript-eslint';

/** Domain and activities must decide alike at every replay, so nothing in them may ask the world. */
const noWorld = [
  {
    selector: "CallExpression[callee.object.name='Date'][callee.property.name='now']",
    message: 'time comes in as `now`',
  },
  { selector: "NewExpression[callee.name='Date'][arguments.length=0]", message: 'time comes in as `now`' },
  {
    selector: "CallExpression[callee.object.name='Math'][callee.property.name='random']",
    message: 'randomness comes in through a port',
  },
  { selector: "CallExpression[callee.name='randomUUID']", message: 'ids come from `newId`' },
];

export default tseslint.config(
  { ignores: ['**/dist', 'coverage', 'data', '*.config.js', '.dependency-cruiser.cjs'] },
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: {
      parserOptions: {
        projectService: {
          allowDefaultProject: [
            'test/build-before-tests.mjs',
            'test/nets/main-thread.mjs',
            'bench/*.mjs',
            'scripts/*.mjs',
          ],
        },
        tsconfigRootDir: import.meta.dirname,
      },
    },
    rules: {
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      '@typescript-eslint/switch-exhaustiveness-check': 'off',
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/unbound-method': 'off',
      // An adapter's method is async because its port is, whether it waits for anything or not.
      '@typescript-eslint/require-await': 'off',
      eqeqeq: 'error',
      'no-restricted-syntax': ['error', { selector: 'ExportDefaultDeclaration', message: 'name what you export' }],
    },
  },
  { files: ['src/domain/**', 'src/activities/**'], rules: { 'no-restricted-syntax': ['error', ...noWorld] } },
  // It holds a thread until the name server answers: see src/http-client/host-addresses.ts.
  {
    files: ['src/**', 'packages/*/src/**'],
    rules: {
      'no-restricted-imports': [
        'error',
        ...['node:dns', 'node:dns/promises'].map((name) => ({ name, importNames: ['lookup', 'promises'] })),
      ],
    },
  },
  // An interface of another package is extended only by its own name and type parameters.
  {
    files: ['src/testing/{jest,jest-globals,vitest}.ts'],
    rules: {
      '@typescript-eslint/no-namespace': ['error', { allowDeclarations: true }],
      '@typescript-eslint/no-empty-object-type': 'off',
      '@typescript-eslint/no-explicit-any': 'off',
      '@typescript-eslint/no-unused-vars': 'off',
    },
  },
  // xstate reads the types of a machine from assertions on empty objects.
  { files: ['src/domain/activity/machine.ts'], rules: { '@typescript-eslint/no-unnecessary-type-assertion': 'off' } },
  { files: ['**/*.mjs', '**/*.js', '**/*.cjs'], ...tseslint.configs.disableTypeChecked },
  // jest requires its environment, runtime, runner and sequencer.
  { files: ['test/{native,mutation}/*.cjs'], rules: { '@typescript-eslint/no-require-imports': 'off' } },
  {
    files: ['test/build-before-tests.mjs', 'test/browser/*.mjs', 'docs/.vitepress/**'],
    rules: { 'no-restricted-syntax': 'off' },
  },
);
