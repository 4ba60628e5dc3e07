import { readFileSync } from 'node:fs';
import ts from 'typescript';
import type { Answer } from './documented.js';

// The types of the published API description, from which the clients in Go, Python, Rust, Swift, Kotlin and Dart are generated.
const file = new URL(
  '../../node_modules/@turnkey/http/dist/__generated__/services/coordinator/public/v1/public_api.types.d.ts',
  import.meta.url,
);

type Members = ReadonlyMap<string, ts.PropertySignature>;

/** What a decoder of those clients takes for the times of an activity: objects alone, or text as well, as JavaScript does. */
type Timestamps = 'object' | 'any';

/**
 * Decodes answers strictly by the published types: each required member is there, each value has its type, each enumeration a
 * known value. Unknown members are ignored, as the generated decoders of all these languages do.
 */
export class PublishedTypes {
  private readonly definitions: Members;
  private readonly paths: Members;
  private readonly operations: Members;

  constructor() {
    const source = ts.createSourceFile('types.d.ts', readFileSync(file, 'utf8'), ts.ScriptTarget.Latest);
    const alias = (name: string): Members => {
      const found = source.statements.find((one) => ts.isTypeAliasDeclaration(one) && one.name.text === name);
      return membersOf((found as ts.TypeAliasDeclaration).type);
    };
    this.definitions = alias('definitions');
    this.paths = alias('paths');
    this.operations = alias('operations');
  }

  /** Published paths. */
  get known(): ReadonlySet<string> {
    return new Set(this.paths.keys());
  }

  /** What a strict decoder refuses in a response; none for a path that is not published. */
  answerProblems({ path, status, body }: Omit<Answer, 'method'>, timestamps: Timestamps): readonly string[] {
    const operation = this.paths.get(path);
    if (!operation) return [];
    const post = membersOf(operation.type!).get('post')!.type as ts.IndexedAccessTypeNode;
    const responses = membersOf(membersOf(this.operations.get(nameIn(post))!.type!).get('responses')!.type!);
    const response = responses.get(status === 200 ? '200' : 'default')!;
    const schema = membersOf(response.type!).get('schema')!.type!;
    const problems: string[] = [];
    this.decode(schema, body, '', { problems, timestamps });
    return problems;
  }

  private decode(
    type: ts.TypeNode,
    value: unknown,
    at: string,
    context: { readonly problems: string[]; readonly timestamps: Timestamps },
  ): void {
    const refuse = (must: string): unknown =>
      context.problems.push(`${at} must be ${must}, is ${String(JSON.stringify(value)).slice(0, 80)}`);
    if (ts.isIndexedAccessTypeNode(type)) {
      const name = nameIn(type);
      if (name === 'externaldatav1Timestamp' && context.timestamps === 'any' && typeof value === 'string') return;
      return this.decode(this.definitions.get(name)!.type!, value, at, context);
    }
    if (ts.isArrayTypeNode(type)) {
      if (!Array.isArray(value)) return void refuse('a list');
      value.forEach((element, index) => this.decode(type.elementType, element, `${at}[${index}]`, context));
      return;
    }
    if (ts.isParenthesizedTypeNode(type)) return this.decode(type.type, value, at, context);
    if (ts.isIntersectionTypeNode(type)) {
      for (const part of type.types) this.decode(part, value, at, context);
      return;
    }
    if (ts.isUnionTypeNode(type) || ts.isLiteralTypeNode(type)) {
      const options = ts.isUnionTypeNode(type) ? type.types : [type];
      const texts = options.map((one) => ((one as ts.LiteralTypeNode).literal as ts.StringLiteral).text);
      if (!texts.includes(value as string)) refuse('a known value of the enumeration');
      return;
    }
    if (ts.isTypeLiteralNode(type)) {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return void refuse('an object');
      for (const [name, member] of membersOf(type)) {
        const inner = (value as Readonly<Record<string, unknown>>)[name];
        // Protobuf's JSON takes null for absent.
        if (inner !== undefined && inner !== null) this.decode(member.type!, inner, `${at}.${name}`, context);
        else if (!member.questionToken) context.problems.push(`${at}.${name} is required`);
      }
      return;
    }
    const scalar = scalars.get(type.kind);
    if (scalar === undefined) throw new Error(`${at}: no decoder for ${ts.SyntaxKind[type.kind]}`);
    if (scalar !== '' && typeof value !== scalar) refuse(`a ${scalar}`);
  }
}

/** The result of `typeof` for each kind of type; empty for any. */
const scalars: ReadonlyMap<ts.SyntaxKind, string> = new Map([
  [ts.SyntaxKind.StringKeyword, 'string'],
  [ts.SyntaxKind.NumberKeyword, 'number'],
  [ts.SyntaxKind.BooleanKeyword, 'boolean'],
  [ts.SyntaxKind.UnknownKeyword, ''],
]);

function membersOf(type: ts.TypeNode): Members {
  const members = (type as ts.TypeLiteralNode).members.filter(ts.isPropertySignature);
  return new Map(members.map((one) => [(one.name as ts.StringLiteral | ts.Identifier | ts.NumericLiteral).text, one]));
}

/** The name in `definitions["name"]`. */
function nameIn(type: ts.IndexedAccessTypeNode): string {
  return ((type.indexType as ts.LiteralTypeNode).literal as ts.StringLiteral).text;
}
