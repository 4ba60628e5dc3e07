import { existsSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Controller, Get, Header, Inject, Param, Redirect, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { CONFIG } from '../config/config.token.js';
import type { Config } from '../config/config.js';
import { endpoints } from '../auth-proxy/endpoints.js';
import { REGISTRY, type Registry } from '../decide/registry.js';
import { CoordinatorError } from '../domain/errors.js';
import { queries } from '../read-models/index.js';
import { openApiDocument } from './openapi.js';

const assets = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));

/** The pages built from the Markdown in `docs/`. */
const site = fileURLToPath(new URL('../site/', import.meta.url));

/** The files served, by path below /docs/: a request never determines a file name. */
const pages: ReadonlySet<string> = new Set(
  existsSync(site)
    ? readdirSync(site, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ parentPath, name }) =>
          join(parentPath, name)
            .slice(site.length)
            .replace(/\.html$/, ''),
        )
    : [],
);

const pageTypes: Readonly<Record<string, string>> = {
  '': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
};

const contentTypes: Readonly<Record<string, string>> = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
};

const page = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Countersign API</title><link rel="icon" href="/docs/icon.svg"><link rel="stylesheet" href="/docs/swagger-ui.css"></head>
<body><p><a href="/docs">All documentation</a></p><div id="swagger-ui"></div><script src="/docs/swagger-ui-bundle.js"></script><script src="/docs/start.js"></script></body>
</html>
`;

// Requests need a stamp over their body, which a form cannot create: the page is for reading. Without a null validator,
// the bundle would send this server's address to a server elsewhere.
const start = `window.ui = SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#swagger-ui',
  supportedSubmitMethods: [],
  validatorUrl: null,
});
`;

/** The documentation, the OpenAPI document and a page to read it, all from this server alone. */
@Controller()
export class DocsController {
  /** Made when it is first asked for, once: a coordinator in a test is rarely asked. */
  private document: object | undefined;

  constructor(
    @Inject(REGISTRY) private readonly registry: Registry,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /** Tells people who open the server's address in a browser what it is. */
  @Get()
  @Redirect('/docs', 302)
  home(): void {
    return;
  }

  @Get('openapi.json')
  openapi(): object {
    const { app, publicUrl = '/' } = this.config;
    this.document ??= openApiDocument(this.registry, queries, app === 'all' ? endpoints : [], publicUrl);
    return this.document;
  }

  @Get('docs')
  docs(@Res({ passthrough: true }) reply: FastifyReply): Promise<Buffer> {
    return this.page('index', reply);
  }

  @Get('docs/api')
  @Header('content-type', 'text/html; charset=utf-8')
  api(): string {
    return page;
  }

  @Get('docs/:folder/:file')
  nested(
    @Param('folder') folder: string,
    @Param('file') file: string,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Buffer> {
    return this.page(`${folder}/${file}`, reply);
  }

  @Get('docs/:file')
  async asset(@Param('file') file: string, @Res({ passthrough: true }) reply: FastifyReply): Promise<Buffer | string> {
    if (file === 'start.js') {
      void reply.type('text/javascript; charset=utf-8');
      return start;
    }
    const contentType = Object.hasOwn(contentTypes, file) ? contentTypes[file] : undefined;
    if (!contentType) return this.page(file, reply);
    void reply.type(contentType);
    return readFile(join(assets, file));
  }

  private async page(path: string, reply: FastifyReply): Promise<Buffer> {
    if (!pages.has(path)) {
      throw new CoordinatorError('NOT_FOUND', 'page not found: /docs lists all pages');
    }
    const extension = extname(path);
    void reply.type(pageTypes[extension] ?? 'application/octet-stream');
    return readFile(join(site, extension === '' ? `${path}.html` : path));
  }
}
