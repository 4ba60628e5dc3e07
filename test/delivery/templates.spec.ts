import {
  authEmail,
  checkSmsTemplate,
  consensusEmail,
  invitationEmail,
  otpEmail,
  otpSms,
  readEmailCustomization,
} from '../../src/delivery/templates.js';
import { CoordinatorError } from '../../src/domain/errors.js';

const otp = { code: '4xk92mtq7', appName: 'Acme', expiresInMinutes: 5 };
const bundle =
  'w99a5xV6A75TfoAUkZn869fVyDYvgVsKrawMALZXmrauZd8hEv66EkPU1Z42CUaHESQjcA5bqd8dynTGBMLWB9ewtXWPEVbZvocB4Tw2K1vQVp7uwjf';

function refusal(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof CoordinatorError && error.code === 'INVALID_ARGUMENT') return error.message;
    throw error;
  }
  throw new Error('it was not refused');
}

const hrefs = (html: string): string[] => [...html.matchAll(/ href="([^"]*)"/g)].map(([, href]) => href!);
const sources = (html: string): string[] => [...html.matchAll(/ src="([^"]*)"/g)].map(([, source]) => source!);

/** What a mail with everything says, for the rules that hold for all of them. */
const all = {
  otp: otpEmail({ ...otp, magicLinkTemplate: 'https://acme.example/%s', logoUrl: 'https://acme.example/logo.png' }),
  auth: authEmail({ bundle, appName: 'Acme', expiresInMinutes: 15 }),
  invitation: invitationEmail({
    organizationName: 'Treasury',
    senderName: 'Alice',
    receiverName: 'Bob',
    url: 'https://acme.example/join',
  }),
  consensus: consensusEmail({
    organizationName: 'Treasury',
    activityType: 'ACTIVITY_TYPE_CREATE_POLICY_V3',
    activityId: '01a1fd11-7c2b-7000-8000-000000000000',
    submitterName: 'Alice',
    url: 'https://acme.example/activities/1',
  }),
};

describe.each(Object.entries(all))('the mail for %s', (_name, { subject, text, html }) => {
  it('is complete in text and in HTML', () => {
    expect(subject).toMatch(/^\S.{5,80}$/);
    expect(text).toMatch(/\S\n$/);
    expect(html).toMatch(/^<!doctype html>/);
    // Every paragraph of the HTML is in the text too.
    const paragraphs = [...html.matchAll(/<p [^>]*>([^<]*)<\/p>/g)].map(([, paragraph]) => paragraph!);
    expect(paragraphs.length).toBeGreaterThan(0);
    for (const paragraph of paragraphs) expect(text).toContain(paragraph);
    for (const href of hrefs(html)) expect(text).toContain(href);
  });

  it('is laid out for mail programs: tables, styles inside, at most 600 pixels, light and dark', () => {
    expect(html).not.toMatch(/<script|<form|<iframe|<link|@import|display:\s*(?:flex|grid)|[;"\s]position:/i);
    const widths = [...html.matchAll(/(?:width="|width:)(\d+)(?:px)?/g)].map(([, width]) => Number(width));
    expect(widths.filter((width) => width !== 100 && width > 600)).toEqual([]);
    expect(html).toContain('max-width:560px');
    expect(html).toContain('prefers-color-scheme:dark');
    expect(html).toContain('<meta name="color-scheme" content="light dark">');
    for (const [table] of html.matchAll(/<table[^>]*>/g)) expect(table).toContain('role="presentation"');
    // Gmail cuts off what is longer than 102 kB.
    expect(html.length).toBeLessThan(50_000);
  });

  it('closes what it opens', () => {
    const open: string[] = [];
    const visible = html.replace(/<!--[^]*?-->/g, '').replace(/<style>[^]*?<\/style>/, '');
    for (const [, slash, name] of visible.matchAll(/<(\/?)([a-z][a-z0-9]*)\b[^>]*>/g)) {
      if (['meta', 'img', 'br'].includes(name!)) continue;
      if (slash) expect(open.pop()).toBe(name);
      else open.push(name!);
    }
    expect(open).toEqual([]);
  });
});

describe('a one-time password by e-mail', () => {
  it('is in the body and nowhere that others see it', () => {
    const { subject, text, html } = all.otp;
    expect(text).toContain('\n    4xk92mtq7\n');
    expect(html).toMatch(/>4xk92mtq7<\/span>/);
    expect(subject).toBe('Your code for Acme');
    const preview = /<div style="display:none[^>]*>([^]*?)<\/div>/.exec(html)![1]!;
    expect(preview).toContain('5 minutes');
    expect([subject, preview, /<title>.*<\/title>/.exec(html)![0]].join()).not.toContain(otp.code);
  });

  it('says how long it is good', () => {
    expect(otpEmail(otp).text).toContain('expires in 5 minutes');
    expect(otpEmail({ ...otp, expiresInMinutes: 1 }).text).toContain('expires in one minute ');
  });

  it('has the link that the caller wants', () => {
    const { text, html } = otpEmail({ ...otp, magicLinkTemplate: 'myapp://login?a=1&code=%s#x' });
    expect(hrefs(html)).toEqual(['myapp://login?a=1&amp;code=4xk92mtq7#x']);
    expect(text).toContain('\nmyapp://login?a=1&code=4xk92mtq7#x\n');
    expect(hrefs(otpEmail(otp).html)).toEqual([]);
  });

  it('has the logo, or the name where there is none', () => {
    expect(sources(all.otp.html)).toEqual(['https://acme.example/logo.png']);
    expect(all.otp.html).toContain('alt="Acme"');
    expect(sources(otpEmail(otp).html)).toEqual([]);
  });

  it('uses the variables that it knows', () => {
    const variables = {
      userName: 'Zoë',
      introText: 'Welcome back.',
      footerText: 'Acme Inc, 1 Main Street',
      supportEmail: 'help@acme.example',
      accentColor: '#ffd23f',
      other: 'not used',
    };
    const { text, html } = otpEmail({ ...otp, magicLinkTemplate: 'https://acme.example/%s', variables });
    for (const part of ['Hello Zoë,', 'Welcome back.', 'Acme Inc, 1 Main Street', 'Questions? help@acme.example']) {
      expect(text).toContain(part);
      expect(html).toContain(part);
    }
    expect(text).not.toContain('Enter this code');
    expect(text + html).not.toContain('not used');
    // Dark letters on a light button, and the other way round.
    expect(html).toMatch(/bgcolor="#ffd23f".*color:#111827;text-decoration:none/);
    expect(all.otp.html).toMatch(/bgcolor="#1f4fd8".*color:#ffffff;text-decoration:none/);
  });

  it('lets nothing out of its place', () => {
    const evil = `"><script>alert(1)</script><img src=x onerror='alert(1)'>&\r\nBcc: x\u202e`;
    const variables = Object.fromEntries(
      ['userName', 'introText', 'footerText', 'supportEmail', 'accentColor'].map((name) => [name, evil]),
    );
    const { subject, text, html } = otpEmail({
      ...otp,
      code: '<b>4&"',
      appName: evil,
      variables,
      logoUrl: 'https://a.example/"><x y=\'',
    });
    expect(html).not.toMatch(/<script|<img src=x|onerror='/);
    expect(html).toContain(
      '&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=&#39;alert(1)&#39;&gt;&amp;',
    );
    expect(sources(html)).toEqual(['https://a.example/%22%3E%3Cx%20y=&#39;']);
    expect(html).toContain('>&lt;b&gt;4&amp;&quot;</span>');
    expect(subject).not.toMatch(/[\r\n\u202e]/);
    expect(text).not.toMatch(/^Bcc/m);
  });

  it.each(['red', '#fff', '#1234567', 'url(https://x)', '#12345g', '#123456;x:y', ''])(
    'has no button of colour %s',
    (accentColor) => {
      const { html } = otpEmail({ ...otp, magicLinkTemplate: 'https://a.example/%s', variables: { accentColor } });
      expect(html).toContain('bgcolor="#1f4fd8"');
    },
  );

  it('cuts long names without breaking a character', () => {
    const { subject } = otpEmail({ ...otp, appName: `${'x'.repeat(254)}🙂` });
    expect(subject.length).toBeLessThanOrEqual(255);
    expect(subject).not.toMatch(/\p{Cs}/u);
  });
});

describe('a credential bundle by e-mail', () => {
  it('is a link, or a text to copy', () => {
    const linked = authEmail({
      bundle,
      appName: 'Acme',
      magicLinkTemplate: 'https://acme.example/#%s',
      expiresInMinutes: 15,
    });
    expect(hrefs(linked.html)).toEqual([`https://acme.example/#${bundle}`]);
    expect(linked.text).toContain(`\nhttps://acme.example/#${bundle}\n`);
    expect(hrefs(all.auth.html)).toEqual([]);
    expect(all.auth.text).toContain(`\n    ${bundle}\n`);
    expect(all.auth.html).toContain(`>${bundle}</span>`);
    expect(all.auth.subject).not.toContain(bundle.slice(0, 8));
  });

  it('stays one part of the link, whatever it holds', () => {
    const link = (value: string) =>
      hrefs(
        authEmail({ bundle: value, appName: 'A', magicLinkTemplate: 'https://a.example/%s/%s', expiresInMinutes: 1 })
          .html,
      );
    expect(link('a/b?c#d&e=$&$1 %')).toEqual(
      Array(1).fill('https://a.example/a%2Fb%3Fc%23d%26e%3D%24%26%241%20%25/a%2Fb%3Fc%23d%26e%3D%24%26%241%20%25'),
    );
  });
});

describe('a logo', () => {
  it.each([
    'http://acme.example/logo.png',
    'data:image/png;base64,AAAA',
    'javascript:alert(1)',
    '//acme.example/logo.png',
    'logo.png',
    'https://user:secret@acme.example/logo.png',
    `https://acme.example/${'x'.repeat(2_048)}`,
  ])('%s is refused', (logoUrl) => {
    const message = /^invalid request: emailCustomization\.logoUrl: must be an https URL of an image, got `/;
    expect(refusal(() => otpEmail({ ...otp, logoUrl }))).toMatch(message);
    expect(refusal(() => readEmailCustomization({ logoUrl }))).toMatch(message);
  });
});

describe('a magic link', () => {
  it.each([
    'https://acme.example/%s',
    'http://localhost:3000/?code=%s',
    'https://acme.example/#%s',
    'https://acme.example/a%20b?x=%s',
    'acme://login/%s',
    'com.acme.app://login?code=%s',
  ])('%s is taken', (magicLinkTemplate) => {
    expect(readEmailCustomization({ magicLinkTemplate }).magicLinkTemplate).toBe(magicLinkTemplate);
    expect(hrefs(otpEmail({ ...otp, magicLinkTemplate }).html)).toEqual([magicLinkTemplate.replace('%s', otp.code)]);
  });

  it.each([
    ['javascript:alert(1)//%s', 'own scheme'],
    ['JavaScript://acme.example/%0aalert(1)//%s', 'own scheme'],
    ['java\tscript:alert(%s)', 'own scheme'],
    [' javascript:alert(%s)', 'own scheme'],
    ['data:text/html,<script>%s</script>', 'own scheme'],
    ['data://text/html,%s', 'own scheme'],
    ['vbscript://x/%s', 'own scheme'],
    ['file:///etc/passwd?%s', 'own scheme'],
    ['blob:https://acme.example/%s', 'own scheme'],
    ['ms-msdt://x/%s', 'own scheme'],
    ['search-ms://x/%s', 'own scheme'],
    ['mailto:a@example.com?body=%s', 'own scheme'],
    ['acme:%s', 'own scheme'],
    ['/login?code=%s', 'own scheme'],
    ['https://acme.example/ %s', 'own scheme'],
    ['%s://acme.example/', 'after the host'],
    ['https://%s/', 'after the host'],
    ['https://%s.evil.example/', 'after the host'],
    ['acme://%s', 'after the host'],
    ['https://acme.example:%s/', 'own scheme'],
    ['https://user:%s@acme.example/', 'user or password'],
    ['https://acme.example/login', 'must contain %s'],
    [`https://acme.example/${'x'.repeat(2_048)}%s`, 'at most 2048 characters'],
  ])('%j is refused', (magicLinkTemplate, rule) => {
    for (const run of [
      () => otpEmail({ ...otp, magicLinkTemplate }),
      () => readEmailCustomization({ magicLinkTemplate }),
      () => authEmail({ bundle, appName: 'A', magicLinkTemplate, expiresInMinutes: 1 }),
    ]) {
      const message = refusal(run);
      expect(message).toMatch(/^invalid request: emailCustomization\.magicLinkTemplate: must /);
      expect(message).toContain(rule);
      expect(message).not.toContain(otp.code);
      expect(message).not.toContain(bundle.slice(0, 8));
    }
  });

  it.each(['javascript:alert(1)', 'data:text/html,x', 'http://user:secret@a.example/'])(
    'of our own notices is checked too: %s',
    (url) => {
      const people = { organizationName: 'T', senderName: 'A', receiverName: 'B', url };
      expect(refusal(() => invitationEmail(people))).toMatch(/^invalid request: url: must /);
      const activity = { organizationName: 'T', activityType: 'X', activityId: '1', submitterName: 'A', url };
      expect(refusal(() => consensusEmail(activity))).toMatch(/^invalid request: url: must /);
    },
  );
});

describe('template variables', () => {
  const read = (templateVariables: string) => readEmailCustomization({ templateVariables }).variables;

  it('are a JSON object of strings, as text', () => {
    expect(read('{"userName":"Zoë","empty":""}')).toEqual({ userName: 'Zoë', empty: '' });
    expect(read('{}')).toEqual({});
    expect(readEmailCustomization({ logoUrl: '', magicLinkTemplate: '', templateVariables: '' })).toEqual({
      logoUrl: undefined,
      magicLinkTemplate: undefined,
      variables: undefined,
    });
    // Names that objects have by themselves are names like others.
    expect(Object.getPrototypeOf(read('{"__proto__":"x"}'))).toBe(Object.prototype);
  });

  it.each([
    ['{', 'this is not JSON'],
    ['null', 'must be a JSON object of strings'],
    ['[]', 'must be a JSON object of strings'],
    ['"text"', 'must be a JSON object of strings'],
    ['{"count":1}', 'but `count` is not a string'],
    ['{"nested":{"a":"b"}}', 'but `nested` is not a string'],
    [
      JSON.stringify(Object.fromEntries(Array.from({ length: 51 }, (_, index) => [index, '']))),
      'at most 50 members, has 51',
    ],
    [JSON.stringify({ long: 'x'.repeat(16_384) }), 'at most 16384 characters'],
  ])('%s is refused', (text, rule) => {
    const message = refusal(() => read(text));
    expect(message).toMatch(/^invalid request: emailCustomization\.templateVariables: must /);
    expect(message).toContain(rule);
  });
});

describe('a one-time password by text message', () => {
  it('says what it is for and how long it is good', () => {
    expect(otpSms(otp)).toBe('4xk92mtq7 is your code for Acme. It expires in 5 minutes. Never share it.');
    // One segment of the GSM alphabet.
    expect(otpSms(otp).length).toBeLessThanOrEqual(160);
  });

  it.each([
    ['Your OTP is {{.OtpCode}}', 'Your OTP is 4xk92mtq7'],
    ['{{ .OtpCode }} — Acme\n@acme.example #{x}', '4xk92mtq7 — Acme\n@acme.example #{x}'],
  ])('is what the caller wants: %s', (template, expected) => {
    expect(otpSms({ ...otp, template })).toBe(expected);
    expect(checkSmsTemplate(template)).toBe(template);
  });

  it('is put in as it is', () => {
    expect(otpSms({ ...otp, code: '$&$1', template: 'x{{.OtpCode}}' })).toBe('x$&$1');
  });

  it.each([
    ['Your code', 'must contain {{.OtpCode}}'],
    ['{{.otpcode}}', 'must contain {{.OtpCode}}'],
    ['{.OtpCode}', 'must contain {{.OtpCode}}'],
    ['{{.OtpCode}} {{.OtpCode}}', 'exactly one {{.OtpCode}}'],
    ['{{.OtpCode}} {{.Secret}}', 'exactly one {{.OtpCode}}'],
    ['{{.OtpCode}} {{range .}}', 'exactly one {{.OtpCode}}'],
    ['{{.OtpCode}}\0', 'control characters'],
    ['{{.OtpCode}}\r\n', 'control characters'],
    [`{{.OtpCode}}${'x'.repeat(1_000)}`, 'at most 1000 characters, has 1012'],
  ])('%j is refused', (template, rule) => {
    for (const run of [() => otpSms({ ...otp, template }), () => checkSmsTemplate(template)]) {
      const message = refusal(run);
      expect(message).toMatch(/^invalid request: smsCustomization\.template: must /);
      expect(message).toContain(rule);
    }
  });
});
