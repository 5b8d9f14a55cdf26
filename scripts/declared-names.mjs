// Finds the names that a TypeScript or JavaScript file declares: variables, functions, classes, types, their
// parameters, imports' local names, properties and methods of types, classes and object literals, members of
// enums. It reads tokens and builds no syntax tree, because TypeScript 7 has no compiler interface. Comments,
// strings and regular expressions are skipped; what stands in `${}` of a template is read.

const TOKEN =
  /(?<skip>\s+|\/\/[^\n]*|\/\*[\s\S]*?\*\/)|(?<string>'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*")|(?<name>#?[A-Za-z_$][\w$]*)|(?<number>\d[\w.]*)|(?<sign>=>|\.\.\.|\?\.|[\s\S])/gy;
const REGEX = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y;
const CLOSES = { '(': ')', '[': ']', '{': '}' };
const BEFORE_REGEX = new Set(
  '( , = : [ ! & | ? { } ; + - * % < > => ... return typeof case in of'.split(' '),
);
const DECLARES = new Set(['const', 'let', 'var', 'using']);
const NAMES_NEXT = new Set(['function', 'class', 'type', 'interface', 'enum', 'namespace']);
const MODIFIERS = new Set(
  'readonly public private protected static declare accessor abstract override async get set *'.split(
    ' ',
  ),
);
const NOT_A_NAME = new Set(
  'if for while switch catch return function new typeof await case of in do else default import'.split(
    ' ',
  ),
);

/** Reads `text` as tokens with the line of each; what is not code is left out. */
function tokenize(text) {
  const tokens = [];
  const templates = [];
  let at = 0;
  let line = 1;
  const push = (kind, value) => tokens.push({ kind, text: value, line });
  const advance = (value) => {
    line += value.split('\n').length - 1;
    at += value.length;
  };
  /** Skips the text of a template up to its end or to the code that it embeds. */
  const skipTemplate = () => {
    const part = /(?:[^`\\$]|\\[\s\S]|\$(?!\{))*(?:`|\$\{|$)/y;
    part.lastIndex = at;
    const value = part.exec(text)[0];
    advance(value);
    if (value.endsWith('${')) templates.push(0);
  };
  /** True where the sign belongs to a template and not to the code. */
  const isTemplate = (sign) => {
    if (sign === '`') return true;
    const depth = templates.at(-1);
    if (depth === undefined) return false;
    if (sign === '{') templates[templates.length - 1]++;
    if (sign !== '}') return false;
    if (depth > 0) {
      templates[templates.length - 1]--;
      return false;
    }
    templates.pop();
    return true;
  };
  const regexHere = () => {
    if (text[at] !== '/') return undefined;
    const before = tokens.at(-1);
    if (before !== undefined && !BEFORE_REGEX.has(before.text)) return undefined;
    REGEX.lastIndex = at;
    return REGEX.exec(text)?.[0];
  };
  while (at < text.length) {
    TOKEN.lastIndex = at;
    const { 0: value, groups } = TOKEN.exec(text);
    if (groups.skip !== undefined) {
      advance(value);
      continue;
    }
    const regex = regexHere();
    if (regex !== undefined) {
      push('literal', regex);
      advance(regex);
    } else if (groups.sign !== undefined && isTemplate(value)) {
      if (value === '`') push('literal', '``');
      advance(value);
      skipTemplate();
    } else {
      push(groups.name === undefined ? (groups.sign ? 'sign' : 'literal') : 'name', value);
      advance(value);
    }
  }
  return tokens;
}

/** The index of the bracket that closes each opening one, and back. */
function pairBrackets(tokens) {
  const pairs = new Map();
  const open = [];
  tokens.forEach(({ kind, text }, index) => {
    if (kind !== 'sign') return;
    if (text in CLOSES) open.push(index);
    else if (text === ')' || text === ']' || text === '}') {
      const from = open.pop();
      if (from === undefined) return;
      pairs.set(from, index);
      pairs.set(index, from);
    }
  });
  return pairs;
}

/** The names that a file declares, each with its line, and whether it is the name of a property. */
export function declaredNames(text) {
  const tokens = tokenize(text);
  const pairs = pairBrackets(tokens);
  const found = new Map();
  const is = (index, value) => tokens[index]?.kind !== 'literal' && tokens[index]?.text === value;
  const isName = (index) => tokens[index]?.kind === 'name';

  function add(index, isProperty) {
    const { text: name, line } = tokens[index];
    if (!found.has(index)) found.set(index, { name: name.replace(/^#/, ''), line, isProperty });
  }

  /** Names bound by the pattern that begins at `index`: one name, or what is taken apart. */
  function addBinding(index) {
    if (isName(index)) return add(index, false);
    if (!is(index, '{') && !is(index, '[')) return;
    addBindings(index);
  }

  /** Names bound between a bracket and its end: of parameters, or of what is taken apart. */
  function addBindings(open) {
    const end = pairs.get(open) ?? open;
    for (let index = open + 1; index < end; index++) {
      if (startsBinding(index, open)) addBinding(index);
      else if (tokens[index].text in CLOSES && tokens[index].kind === 'sign')
        index = pairs.get(index) ?? index;
    }
  }

  /** In `{ a, b: c = 1, ...d }`: a, c and d; in `(a: T, { b })`: a and the pattern of b. */
  function startsBinding(index, open) {
    const before = is(index - 1, '...') ? index - 2 : index - 1;
    const isFirst = before === open || is(before, ',');
    if (is(open, '{')) {
      if (isFirst) return isName(index) && !is(index + 1, ':');
      return is(index - 1, ':') && (isFirst || is(index - 3, ',') || index - 3 === open);
    }
    if (isName(index) && MODIFIERS.has(tokens[index].text) && isName(index + 1)) return false;
    return isFirst || (isName(index - 1) && MODIFIERS.has(tokens[index - 1].text));
  }

  function addImports(index) {
    for (let at = index + 1; at < tokens.length && !is(at, ';') && !is(at, 'from'); at++) {
      if (is(at, '(') || is(at, '.')) return;
      if (isName(at) && !is(at, 'as') && !is(at, 'type') && !is(at + 1, 'as')) add(at, false);
    }
  }

  function addDeclaration(index) {
    const { text: word } = tokens[index];
    if (is(index - 1, '.')) return;
    if (DECLARES.has(word)) addBinding(index + 1);
    else if (word === 'import') addImports(index);
    else if (word === 'catch' && is(index + 1, '(')) addBinding(index + 2);
    else if (NAMES_NEXT.has(word)) addNamed(index);
  }

  /** The name behind `function`, `class`, `type` and so on; `type` may be an ordinary name too. */
  function addNamed(index) {
    const next = is(index + 1, '*') ? index + 2 : index + 1;
    const isType = is(index, 'type');
    if (isName(next) && (!isType || is(next + 1, '=') || is(next + 1, '<'))) add(next, false);
    if (is(index, 'enum') && is(next + 1, '{')) addMembers(next + 1);
  }

  function addMembers(open) {
    for (let at = open + 1; at < (pairs.get(open) ?? open); at++)
      if (isName(at) && (is(at - 1, ',') || at - 1 === open)) add(at, true);
  }

  function startsMember(index) {
    const before = tokens[index - 1];
    if (before === undefined || before.kind === 'literal') return false;
    return '{,;([}'.includes(before.text) || MODIFIERS.has(before.text);
  }

  /** `name:`, `name?:`, `name = …` behind a modifier, `name(…) {` and `name(…): T`. */
  function addProperty(index) {
    if (!startsMember(index) || NOT_A_NAME.has(tokens[index].text)) return;
    const next = is(index + 1, '?') ? index + 2 : index + 1;
    if (is(next, ':')) return add(index, !is(index - 1, '(') && !is(index - 1, '['));
    if (is(next, '=') && isField(index)) return add(index, true);
    const open = is(next, '<') ? skipTypes(next) : next;
    if (is(open, '(') && isMethod(open)) {
      add(index, true);
      addBindings(open);
    }
  }

  function isField(index) {
    return (
      tokens[index].text.startsWith('#') ||
      (isName(index - 1) && MODIFIERS.has(tokens[index - 1].text))
    );
  }

  function isMethod(open) {
    const end = pairs.get(open);
    return end !== undefined && (is(end + 1, '{') || is(end + 1, ':'));
  }

  function skipTypes(open) {
    let depth = 0;
    for (let at = open; at < tokens.length; at++) {
      if (is(at, '<')) depth++;
      if (is(at, '>')) depth--;
      if (depth === 0) return at + 1;
    }
    return open;
  }

  /** Parameters of arrow functions and of functions. */
  function addParameters(index) {
    if (is(index, 'function')) return addFunctionParameters(index + 1);
    const end = is(index, '(') ? pairs.get(index) : undefined;
    if (end !== undefined && is(end + 1, '=>')) addBindings(index);
  }

  function addFunctionParameters(index) {
    const name = is(index, '*') ? index + 1 : index;
    const next = isName(name) ? name + 1 : name;
    const open = is(next, '<') ? skipTypes(next) : next;
    if (is(open, '(')) addBindings(open);
  }

  tokens.forEach(({ kind }, index) => {
    if (kind === 'name') addDeclaration(index);
    if (kind === 'name') addProperty(index);
    if (kind !== 'literal') addParameters(index);
  });
  return [...found.values()];
}
