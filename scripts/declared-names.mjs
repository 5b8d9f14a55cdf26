// Finds the names that a TypeScript or JavaScript file declares: variables, functions, classes, types, their
// parameters, imports' local names, properties and methods of types, classes and object literals, members of
// enums. It reads tokens and builds no syntax tree, because TypeScript 7 has no compiler interface. Comments,
// strings and regular expressions are skipped; what stands in `${}` of a template is read.

const TOKEN =
  /(?<skip>\s+|\/\/[^\n]*|\/\*[\s\S]*?\*\/)|(?<string>'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*")|(?<name>#?[A-Za-z_$][\w$]*)|(?<number>\d[\w.]*)|(?<sign>=>|\.\.\.|\?\.|[\s\S])/gy;
const REGEX = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y;
const CLOSES = { '(': ')', '[': ']', '{': '}' };
const CLOSING = new Set(Object.values(CLOSES));
const BEFORE_REGEX = new Set('( , = : [ ! & | ? { } ; + - * % < > => ... return typeof case in of'.split(' '));
const DECLARES = new Set(['const', 'let', 'var', 'using']);
const NAMES_NEXT = new Set(['function', 'class', 'type', 'interface', 'enum', 'namespace']);
const MODIFIERS = new Set(
  'readonly public private protected static declare accessor abstract override async get set *'.split(' '),
);
const NOT_A_NAME = new Set(
  'if for while switch catch return function new typeof await case of in do else default import'.split(' '),
);

/** The end of the part of a template that begins at `at`, and whether code is embedded there. */
function templatePart(text, at) {
  const part = /(?:[^`\\$]|\\[\s\S]|\$(?!\{))*(?:`|\$\{|$)/y;
  part.lastIndex = at;
  return part.exec(text)[0];
}

/** A regular expression that begins at `at`, as far as the token before allows one. */
function regexAt(text, at, before) {
  if (text[at] !== '/') return undefined;
  if (before !== undefined && !BEFORE_REGEX.has(before.text)) return undefined;
  REGEX.lastIndex = at;
  return REGEX.exec(text)?.[0];
}

function kindOf(groups) {
  if (groups.name !== undefined) return 'name';
  return groups.sign === undefined ? 'literal' : 'sign';
}

/** Follows the templates that are open, each with the depth of braces in the code that it embeds. */
function createTemplates() {
  const depths = [];
  return {
    /** True where text of a template begins behind this sign. */
    leadsToText(sign) {
      if (sign === '`') return true;
      if (depths.length === 0) return false;
      const last = depths.length - 1;
      if (sign === '{') depths[last]++;
      if (sign !== '}') return false;
      if (depths[last] === 0) return depths.pop() === 0;
      depths[last]--;
      return false;
    },
    read(part) {
      if (part.endsWith('${')) depths.push(0);
    },
  };
}

/** Reads `text` as tokens with the line of each; what is not code is left out. */
function tokenize(text) {
  const tokens = [];
  const templates = createTemplates();
  let at = 0;
  let line = 1;
  const take = (value, kind) => {
    if (kind !== undefined) tokens.push({ kind, text: value, line });
    line += value.split('\n').length - 1;
    at += value.length;
  };
  const takeTemplate = (sign) => {
    take(sign, sign === '`' ? 'literal' : undefined);
    const part = templatePart(text, at);
    templates.read(part);
    take(part);
  };
  const takeNext = () => {
    TOKEN.lastIndex = at;
    const { 0: value, groups } = TOKEN.exec(text);
    if (groups.skip !== undefined) return take(value);
    const regex = regexAt(text, at, tokens.at(-1));
    if (regex !== undefined) return take(regex, 'literal');
    if (groups.sign !== undefined && templates.leadsToText(value)) return takeTemplate(value);
    take(value, kindOf(groups));
  };
  while (at < text.length) takeNext();
  return tokens;
}

/** Of each bracket the index of its counterpart, and of each token the index of the bracket around it. */
function pairBrackets(tokens) {
  const pairs = new Map();
  const around = [];
  const open = [];
  const close = (index) => {
    const from = open.pop();
    if (from === undefined) return;
    pairs.set(from, index);
    pairs.set(index, from);
  };
  tokens.forEach(({ kind, text }, index) => {
    if (kind === 'sign' && CLOSING.has(text)) close(index);
    around.push(open.at(-1));
    if (kind === 'sign' && text in CLOSES) open.push(index);
  });
  return { pairs, around };
}

/** The names that a file declares, each with its line, and whether it is the name of a property. */
export function declaredNames(text) {
  const tokens = tokenize(text);
  const { pairs, around } = pairBrackets(tokens);
  const found = new Map();
  const is = (index, value) => tokens[index]?.kind !== 'literal' && tokens[index]?.text === value;
  const isName = (index) => tokens[index]?.kind === 'name';

  function add(index, isProperty) {
    const { text: name, line } = tokens[index];
    if (!found.has(index)) found.set(index, { name, line, isProperty });
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
      else if (tokens[index].text in CLOSES && tokens[index].kind === 'sign') index = pairs.get(index) ?? index;
    }
  }

  /** In `{ a, b: c = 1, ...d }`: a, c and d; in `(a: T, { b })`: a and the pattern of b. */
  function startsBinding(index, open) {
    const before = is(index - 1, '...') ? index - 2 : index - 1;
    const isFirst = before === open || is(before, ',');
    return is(open, '{') ? startsInPattern(index, open, isFirst) : startsParameter(index, isFirst);
  }

  function startsInPattern(index, open, isFirst) {
    if (isFirst) return isName(index) && !is(index + 1, ':');
    return is(index - 1, ':') && (is(index - 3, ',') || index - 3 === open);
  }

  function startsParameter(index, isFirst) {
    if (isModifier(index) && isName(index + 1)) return false;
    return isFirst || isModifier(index - 1);
  }

  function isModifier(index) {
    return isName(index) && MODIFIERS.has(tokens[index].text);
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
    if (NOT_A_NAME.has(tokens[index].text)) return false;
    return '{,;([}'.includes(before.text) || MODIFIERS.has(before.text);
  }

  /** `name:`, `name?:`, `name = …` behind a modifier, `name(…) {` and `name(…): T`. */
  function addProperty(index) {
    if (!startsMember(index)) return;
    const next = index + Number(is(index + 1, '?')) + 1;
    if (is(next, ':')) return add(index, is(around[index], '{'));
    if (is(next, '=') && isField(index)) return add(index, true);
    addMethod(index, skipTypes(next));
  }

  function addMethod(index, open) {
    if (!is(open, '(') || !isMethod(open)) return;
    add(index, true);
    addBindings(open);
  }

  function isField(index) {
    return tokens[index].text.startsWith('#') || isModifier(index - 1);
  }

  function isMethod(open) {
    const end = pairs.get(open);
    return end !== undefined && (is(end + 1, '{') || is(end + 1, ':'));
  }

  /** Where the types between `<` and `>` end that may begin here. */
  function skipTypes(open) {
    if (!is(open, '<')) return open;
    let depth = 0;
    for (let at = open; at < tokens.length; at++) {
      depth += Number(is(at, '<')) - Number(is(at, '>'));
      if (depth === 0) return at + 1;
    }
    return open;
  }

  /** True where an arrow follows the parameters that end here, with the type of what it returns or without. */
  function isArrow(end) {
    if (is(end + 1, '=>')) return true;
    if (!is(end + 1, ':')) return false;
    let at = end + 2;
    while (at < tokens.length && !is(at, '=>') && !endsType(at)) at = Math.max(at, pairs.get(at) ?? at) + 1;
    return is(at, '=>');
  }

  function endsType(at) {
    return tokens[at].kind === 'sign' && (tokens[at].text === ';' || CLOSING.has(tokens[at].text));
  }

  /** Parameters of arrow functions and of functions. */
  function addParameters(index) {
    if (is(index, 'function')) return addFunctionParameters(index + 1);
    const end = is(index, '(') ? pairs.get(index) : undefined;
    if (end !== undefined && isArrow(end)) addBindings(index);
  }

  function addFunctionParameters(index) {
    const name = is(index, '*') ? index + 1 : index;
    const next = isName(name) ? name + 1 : name;
    const open = skipTypes(next);
    if (is(open, '(')) addBindings(open);
  }

  tokens.forEach(({ kind }, index) => {
    if (kind === 'name') addDeclaration(index);
    if (kind === 'name') addProperty(index);
    if (kind !== 'literal') addParameters(index);
  });
  return [...found.values()];
}
