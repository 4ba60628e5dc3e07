import { plainToInstance } from 'class-transformer';
import { validateSync, type ValidationError } from 'class-validator';
import { invalidFields } from '../domain/errors.js';

/**
 * Turns plain JSON into the wire class it should be, with every rule of the class checked and no unknown member.
 * `path` is what field names begin with in errors, such as `parameters`.
 * @throws {CoordinatorError} INVALID_ARGUMENT that names each bad field
 */
export function validate<Shape extends object>(shape: new () => Shape, plain: object, path = ''): Shape {
  const instance = plainToInstance(shape, plain);
  const errors = validateSync(instance, {
    whitelist: true,
    forbidNonWhitelisted: true,
    forbidUnknownValues: true,
    stopAtFirstError: true,
    validationError: { target: false, value: false },
  });
  if (errors.length > 0) throw invalidFields(errors.flatMap((error) => violations(error, path)).slice(0, 20));
  return instance;
}

function violations(error: ValidationError, parent: string): { field: string; description: string }[] {
  const isIndex = /^\d+$/.test(error.property);
  const field = isIndex ? `${parent}[${error.property}]` : parent ? `${parent}.${error.property}` : error.property;
  const own = Object.entries(error.constraints ?? {}).map(([rule, description]) => ({
    field,
    description: rule === 'whitelistValidation' ? 'is not a field of this request' : description,
  }));
  // A list whose elements are wrong says so itself; saying it of each element again helps nobody.
  return own.length > 0 ? own : (error.children ?? []).flatMap((child) => violations(child, field));
}
