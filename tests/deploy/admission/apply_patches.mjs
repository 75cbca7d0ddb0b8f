// Applies JSON patches as RFC 6902 says, by a library that nobody here wrote: reads a list of
// {object, patch} from standard input, prints the list of what they make.
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';

const jsonpatch = createRequire(new URL('../package.json', import.meta.url))('fast-json-patch');
const cases = JSON.parse(readFileSync(0, 'utf8'));
const made = cases.map(({object, patch}) => {
  const fault = jsonpatch.validate(patch, object);
  if (fault) throw fault;
  return jsonpatch.applyPatch(object, patch, true).newDocument;
});
process.stdout.write(JSON.stringify(made));
