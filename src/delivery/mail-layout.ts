/** The contents of a mail, written once for its text and its HTML. */
export type Block =
  | { readonly kind: 'paragraph'; readonly text: string }
  /** Smaller and paler. */
  | { readonly kind: 'note'; readonly text: string }
  /** A few characters to type. */
  | { readonly kind: 'code'; readonly text: string }
  /** A long text without spaces to copy. */
  | { readonly kind: 'bundle'; readonly text: string }
  | { readonly kind: 'link'; readonly label: string; readonly url: string }
  | { readonly kind: 'facts'; readonly rows: readonly (readonly [name: string, value: string])[] };

/** The parts of an e-mail that depend on its purpose. */
export interface Mail {
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

interface Layout {
  readonly subject: string;
  readonly title: string;
  /** Shown next to the subject in the list of mails, so it contains no secret. */
  readonly preview: string;
  readonly appName: string;
  /** An https URL. */
  readonly logoUrl: string | undefined;
  /** `#rrggbb`, for buttons. */
  readonly accentColor: string;
  readonly blocks: readonly Block[];
  readonly footer: readonly string[];
}

/** Escapes for an element's content and for a quoted attribute. */
function escapeHtml(text: string): string {
  const names: Readonly<Record<string, string>> = { '&': 'amp', '<': 'lt', '>': 'gt', '"': 'quot', "'": '#39' };
  return text.replace(/[&<>"']/g, (character) => `&${names[character]};`);
}

/** The mail as text and as HTML. */
export function layOut(layout: Layout): Mail {
  return { subject: layout.subject, text: asText(layout), html: asHtml(layout) };
}

function asText({ title, blocks, footer }: Layout): string {
  const parts = blocks.map((block) => {
    switch (block.kind) {
      case 'code':
      case 'bundle':
        return `    ${block.text}`;
      case 'link':
        return `${block.label}:\n${block.url}`;
      case 'facts':
        return block.rows.map(([name, value]) => `${name}: ${value}`).join('\n');
      default:
        return block.text;
    }
  });
  // RFC 3676, 4.3: mail programs treat such a line as the start of the signature.
  return `${[title, ...parts, ['-- ', ...footer].join('\n')].join('\n\n')}\n`;
}

const fonts = "-apple-system,BlinkMacSystemFont,'Segoe UI',Roboto,Helvetica,Arial,sans-serif";
const fixed = "ui-monospace,SFMono-Regular,Menlo,Consolas,'Liberation Mono',monospace";

/**
 * Tables, because Outlook supports no other layout; inline styles, because Gmail drops others from forwarded mails. The
 * only style sheet changes colours for dark mode, and the mail is readable without it.
 */
function asHtml({ subject, title, preview, appName, logoUrl, accentColor, blocks, footer }: Layout): string {
  const name = escapeHtml(appName);
  const mark = logoUrl
    ? `<img src="${escapeHtml(logoUrl)}" alt="${name}" height="48" style="display:block;border:0;height:48px;width:auto;max-width:340px;object-fit:contain;object-position:left">`
    : `<span class="text" style="font:600 18px/24px ${fonts};color:#111827">${name}</span>`;
  const rows = blocks.map((block) => row(blockHtml(block, accentColor), space[block.kind])).join('\n');
  const small = footer.map(escapeHtml).join('<br>');
  return `<!doctype html>
<html lang="en" xmlns:o="urn:schemas-microsoft-com:office:office">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<meta name="format-detection" content="telephone=no,date=no,address=no,email=no">
<title>${escapeHtml(subject)}</title>
<!--[if mso]><xml><o:OfficeDocumentSettings><o:PixelsPerInch>96</o:PixelsPerInch></o:OfficeDocumentSettings></xml><![endif]-->
<style>
:root{color-scheme:light dark;supported-color-schemes:light dark}
@media (max-width:480px){.inner{padding-left:24px!important;padding-right:24px!important}.code{font-size:26px!important;letter-spacing:3px!important}}
@media (prefers-color-scheme:dark){
.page{background:#0f1216!important}.card{background:#1a1f26!important;border-color:#2b323c!important}
.text{color:#f3f4f6!important}.pale{color:#a3acba!important}.box{background:#262d37!important;border-color:#39424f!important}
}
</style>
</head>
<body class="page" style="margin:0;padding:0;background:#f3f4f6;-webkit-text-size-adjust:100%">
<div style="display:none;max-height:0;overflow:hidden;mso-hide:all">${escapeHtml(preview)}${'&#847;&zwnj;&nbsp;'.repeat(40)}</div>
<table class="page" role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0" bgcolor="#f3f4f6" style="background:#f3f4f6">
<tr><td align="center" style="padding:32px 12px">
<!--[if mso]><table role="presentation" width="560" cellpadding="0" cellspacing="0" border="0"><tr><td><![endif]-->
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0" style="max-width:560px">
<tr><td class="card inner" bgcolor="#ffffff" style="background:#ffffff;border:1px solid #e5e7eb;border-radius:12px;padding:32px 40px 24px">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0">
${row(mark, 28)}
${row(`<h1 class="text" style="margin:0;font:600 22px/30px ${fonts};color:#111827">${escapeHtml(title)}</h1>`, 12)}
${rows}
</table>
</td></tr>
<tr><td class="inner pale" align="left" style="padding:16px 40px 0;font:400 12px/18px ${fonts};color:#6b7280">${small}</td></tr>
</table>
<!--[if mso]></td></tr></table><![endif]-->
</td></tr>
</table>
</body>
</html>
`;
}

/** Pixels below each kind of block. */
const space: Readonly<Record<Block['kind'], number>> = {
  paragraph: 16,
  note: 12,
  code: 20,
  bundle: 20,
  link: 20,
  facts: 20,
};

const row = (html: string, below: number): string =>
  `<tr><td align="left" style="padding:0 0 ${below}px">${html}</td></tr>`;

function blockHtml(block: Block, accentColor: string): string {
  switch (block.kind) {
    case 'paragraph':
      return `<p class="text" style="margin:0;font:400 16px/24px ${fonts};color:#1f2937">${escapeHtml(block.text)}</p>`;
    case 'note':
      return `<p class="pale" style="margin:0;font:400 14px/21px ${fonts};color:#6b7280">${escapeHtml(block.text)}</p>`;
    case 'code':
      return box(
        `<span class="text code" style="font:600 32px/40px ${fixed};letter-spacing:5px;color:#111827">${escapeHtml(block.text)}</span>`,
        'center',
      );
    case 'bundle':
      return box(
        `<span class="text" style="font:400 13px/20px ${fixed};color:#111827;word-break:break-all">${escapeHtml(block.text)}</span>`,
        'left',
      );
    case 'link': {
      const url = escapeHtml(block.url);
      const ink = inkOn(accentColor);
      return `<table role="presentation" cellpadding="0" cellspacing="0" border="0"><tr><td align="center" bgcolor="${accentColor}" style="background:${accentColor};border-radius:8px"><a href="${url}" target="_blank" rel="noopener noreferrer" style="display:inline-block;padding:13px 28px;border:1px solid ${accentColor};border-radius:8px;font:600 16px/20px ${fonts};color:${ink};text-decoration:none">${escapeHtml(block.label)}</a></td></tr></table>`;
    }
    case 'facts': {
      const cells = block.rows.map(
        ([name, value]) =>
          `<tr><td class="pale" valign="top" style="padding:4px 16px 4px 0;font:400 14px/20px ${fonts};color:#6b7280;white-space:nowrap">${escapeHtml(name)}</td><td class="text" style="padding:4px 0;font:400 14px/20px ${fonts};color:#111827;word-break:break-word">${escapeHtml(value)}</td></tr>`,
      );
      return box(
        `<table role="presentation" cellpadding="0" cellspacing="0" border="0">${cells.join('')}</table>`,
        'left',
      );
    }
  }
}

const box = (html: string, align: 'left' | 'center'): string =>
  `<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0"><tr><td class="box" align="${align}" bgcolor="#f3f4f6" style="background:#f3f4f6;border:1px solid #e5e7eb;border-radius:8px;padding:16px 20px">${html}</td></tr></table>`;

/** White or nearly black, whichever is readable on the colour (WCAG 2.2, relative luminance). */
function inkOn(color: string): string {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(color.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.4 ? '#111827' : '#ffffff';
}
