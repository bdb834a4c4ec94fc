// The first key that an object of a JSON text has twice, or undefined.
// JSON.parse() takes the last of two members without a word, other parsers
// the first: nothing that the module sends may depend on that.

export function duplicateKey(text) {
  const open = [];                // the keys of an object, or null in an array
  const token = /[{}[\]]|"(?:[^"\\]|\\.)*"(\s*:)?/gs;

  for (const [it, isKey] of text.matchAll(token)) {
    if (it === "{") open.push(new Set());
    else if (it === "[") open.push(null);
    else if (it === "}" || it === "]") open.pop();
    else if (isKey && open.at(-1)) {
      const key = JSON.parse(it.slice(0, -isKey.length));
      if (open.at(-1).has(key)) return key;
      open.at(-1).add(key);
    }
  }

  return undefined;
}
