// The vocabulary for secrets that a person should not type into a form, and for the words around them that
// request, rename or deny them, in English, German, French, Spanish, Japanese and Chinese. Written without
// accents, capitals and blanks. It also finds such terms in a clause, with letters set apart and words run
// together; secret-requests.ts draws the conclusions.
// Source: MCP 2025-11-25, elicitation (no sensitive information through forms).

/** A term found, with the blank before it and without the one after it. */
export type TermMatch = { readonly 0: string; readonly index: number };

type KindSearch = {
  /** What may follow a term before the next blank. Sticky. */
  readonly ending: RegExp;
  /** Further forms, tried before and after the terms: sticky patterns from one blank to another. */
  readonly before?: RegExp;
  readonly behind?: RegExp;
};

/** Terms for secrets. Texts are lower-case words between single blanks, with a blank at each end. */
export type SecretTerms = {
  /** The matches in order, without overlaps, found lazily. */
  matches(phrase: string): IterableIterator<TermMatch>;
  isIn(phrase: string): boolean;
  /** The text without the terms. */
  without(phrase: string): string;
};

/** Shorter terms match only as one word or with all letters set apart; otherwise they would match by chance. */
const MIN_LOOSE = 6;

type Node = { readonly next: Map<string, Node>; length: number };

function treeOf(vocabulary: readonly string[]): Node {
  const root: Node = { next: new Map(), length: 0 };
  for (const word of vocabulary) {
    let node = root;
    for (const letter of word) {
      const known = node.next.get(letter) ?? { next: new Map(), length: 0 };
      node.next.set(letter, known);
      node = known;
    }
    node.length = word.length;
  }
  return root;
}

/** The end of the longest term that begins after the blank at `at`, or -1. */
function wordEnd(phrase: string, at: number, tree: Node, ending: RegExp): number {
  let node: Node | undefined = tree;
  let blanks = 0;
  let end = -1;
  let position = at + 1;
  while (position < phrase.length) {
    if (phrase[position] === ' ' && position > at + 1) {
      blanks++;
      position++;
    }
    node = node.next.get(phrase[position] ?? '');
    if (node === undefined) break;
    position++;
    if (isWord(node.length, blanks)) end = Math.max(end, matchAt(ending, phrase, position));
  }
  return end;
}

function isWord(length: number, blanks: number): boolean {
  if (length < MIN_LOOSE && blanks > 0) return length > 0 && blanks === length - 1;
  return length > 0;
}

/** The end of the sticky pattern's match at `at`, or -1. */
function matchAt(pattern: RegExp | undefined, phrase: string, at: number): number {
  if (pattern === undefined) return -1;
  pattern.lastIndex = at;
  return pattern.test(phrase) ? pattern.lastIndex : -1;
}

// Builds the search for a vocabulary. Terms are walked as a tree of letters, because compiling one regular
// expression of all terms takes a tenth of a second. Linear.
function createKinds(vocabulary: readonly string[], search: KindSearch): SecretTerms {
  const tree = treeOf(vocabulary);
  const { ending, before, behind } = search;

  function endFrom(phrase: string, at: number): number {
    const first = matchAt(before, phrase, at);
    if (first >= 0) return first;
    const second = wordEnd(phrase, at, tree, ending);
    return second >= 0 ? second : matchAt(behind, phrase, at);
  }

  function* matches(phrase: string): IterableIterator<TermMatch> {
    for (let at = phrase.indexOf(' '); at >= 0; ) {
      const end = endFrom(phrase, at);
      if (end >= 0) yield { 0: phrase.slice(at, end), index: at };
      at = phrase.indexOf(' ', end >= 0 ? end : at + 1);
    }
  }

  return {
    matches,
    isIn: (phrase) => matches(phrase).next().done !== true,
    without(phrase) {
      let kept = '';
      let from = 0;
      for (const { 0: kind, index } of matches(phrase)) {
        kept += phrase.slice(from, index);
        from = index + kind.length;
      }
      return kept + phrase.slice(from);
    },
  };
}

function splitTerms(text: string): readonly string[] {
  return text.trim().split(/\s+/);
}

function wordPattern(text: string): RegExp {
  return new RegExp(`^(?:${either(text)})$`);
}

function either(text: string): string {
  return splitTerms(text).join('|');
}

/** Terms that denote a secret wherever they occur. */
const ENGLISH = splitTerms(`
  password passwrd passphrase passcode passwd pwd pswd pincode pinnumber personalidentificationnumber
  apikey apitoken apisecret appsecret accesskey accesskeyid secretkey secretaccesskey privatekey signingkey
  encryptionkey sshkey licensekey serviceaccountkey masterkey clientsecret webhooksecret sharedsecret secretvalue
  accesstoken authtoken authenticationtoken authorizationtoken bearertoken refreshtoken sessiontoken
  oauthtoken personalaccesstoken logintoken idtoken securitytoken accesscode sessioncookie authcookie
  onetimecode onetimepassword onetimepin onetimetoken onetimepasscode verificationcode authenticationcode
  authenticatorcode authcode mfacode 2facode twofactorcode securitycode confirmationcode smscode logincode
  resetcode resettoken otp totp otpcode cvv cvv2 cvc cvc2 cardnumber creditcardnumber debitcardnumber cardno
  creditcard debitcard paymentcard bankcard carddetails cardexpiry cardexpiration cardverification
  bankaccount bankdetails accountnumber routingnumber sortcode iban ssn socialsecurity socialsecuritynumber
  passportnumber nationalinsurancenumber logindetails credential logincredential seedphrase seedword
  recoveryphrase recoverycode recoverykey recoveryword backupcode backupphrase mnemonicphrase mnemonicword
  walletphrase secretphrase secretword securityquestion securityanswer
  secretquestion secretanswer maidenname banklogin envfile idrsa
  jwt jsonwebtoken passkey unlockcode unlockpin authenticationdetails authdetails cookievalue cookieheader sessionidcookie
  ccnumber backofyourcard backofthecard expiryofyourcard numberonyourcard last4ofyoursocial last4ofyourssn
  openaikey anthropickey claudekey geminikey stripekey npmtoken serviceaccountjson serviceaccountkeyjson
  keystorefile keystorecontent kubeconfigcontent pastekubeconfig 2facode your2fa
`);
const GERMAN = splitTerms(`
  passwort passworter kennwort kennworter zugangsdaten anmeldedaten geheimzahl einmalcode einmalkennwort
  bestatigungscode sicherheitscode zugangscode verifizierungscode apischlussel apischluessel
  zugriffsschlussel privaterschlussel privatenschlussel privateschlussel geheimerschlussel
  geheimenschlussel zugriffstoken zugangstoken kreditkarte kreditkartennummer kartennummer prufziffer
  kontonummer bankverbindung sozialversicherungsnummer wiederherstellungsphrase wiederherstellungscode
  wiederherstellungsschlussel pinnummer codeausdersms codeausihrersms codepersms smscode codeausderapp
  codeausderauthenticatorapp codeauseinersms madchenname zugangsschlussel
`);
const FRENCH = splitTerms(`
  motdepasse motsdepasse mdp phrasedepasse phrasesecrete codesecret codepin codeconfidentiel
  codedeverification codedesecurite codedeconfirmation codeausageunique cleapi clesapi cledapi clesdapi
  cleprivee clesecrete cledacces jetondacces jetonapi jetondapi identifiantsdeconnexion numerodecarte
  cartebancaire cartedecredit cartebleue cryptogramme numerodesecuritesociale phrasederecuperation
  codederecuperation codesderecuperation codea4chiffres codea6chiffres coderecuparsms coderecuparemail codesms
  codeenvoyeparsms codedusms coderecusurvotretelephone
`);
const SPANISH = splitTerms(`
  contrasena contrasenas claveapi clavedeapi claveprivada clavesecreta clavedeacceso codigopin
  codigodeverificacion codigodeseguridad codigodeunsolouso codigodeconfirmacion tokendeacceso tokendeapi
  numerodetarjeta tarjetadecredito tarjetadedebito numerodeseguridadsocial frasesemilla
  frasederecuperacion codigosderecuperacion codigoderecuperacion credenciales numerodecuenta numerodelatarjeta numerodesutarjeta numerodetutarjeta
  codigode4digitos codigode6digitos codigosms codigoporsms codigodelsms codigoquehasrecibido codigoquerecibiste
  codigoquerecibio codigoqueteenviamos codigoqueleenviamos codigoquetehemosenviado codigoquelehemosenviado
`);

const CODES =
  / (?:(?:[0-9]{1,2}|four|six|eight) ?digit (?:code|pin|token)|(?:code|number|digits) (?:from|in|shown in|generated by)(?: [^ ]+){0,2} (?:authenticator|sms|text message)(?: app)?|code from (?:your|the) (?:phone|mobile|e ?mail|inbox)|code (?:that )?(?:we|i|you) (?:have )?(?:just )?(?:sent|texted|e ?mailed|received|got))(?= )/y;
export const ENGLISH_KINDS: SecretTerms = createKinds(ENGLISH, {
  ending: /(?: ?s)?(?= )/y,
  before: CODES,
  behind: / [a-z]{2,24}(?:passwords?|passphrases?|apikeys?)(?= )/y,
});
/** The other languages that separate words by blanks. */
export const KINDS: readonly {
  readonly language: 'de' | 'fr' | 'es';
  readonly kinds: SecretTerms;
}[] = [
  {
    language: 'de',
    kinds: createKinds(GERMAN, {
      ending: /(?:e?[ns])?(?= )/y,
      behind: / [a-z]{2,24}(?:passwort|kennwort)(?:e?[ns])?(?= )/y,
    }),
  },
  { language: 'fr', kinds: createKinds(FRENCH, { ending: /(?= )/y }) },
  { language: 'es', kinds: createKinds(SPANISH, { ending: /(?= )/y }) },
];

/** Languages of which only the word for a password is known. */
export const OTHER_LANGUAGES =
  /(?<!\p{L})(?:senhas?|\u043f\u0430\u0440\u043e\u043b[\u044c\u044f\u044e\u0435\u0438])(?!\p{L})|\ube44\ubc00\ubc88\ud638/u;

/** Scripts that do not separate words. */
export const UNSPACED_TERMS: readonly { readonly language: 'ja' | 'zh'; readonly kinds: RegExp }[] = [
  {
    language: 'ja',
    kinds:
      /パスワード|パスフレーズ|パスコード|暗証番号|合言葉|apiキー|アクセスキー|秘密鍵|秘密キー|シークレットキー|アクセストークン|apiトークン|認証コード|確認コード|検証コード|ワンタイムコード|セキュリティコード|クレジットカード|カード番号|口座番号|マイナンバー|リカバリーフレーズ|シードフレーズ|復元フレーズ|リカバリーコード|ログイン情報|認証情報|[0-9]桁のコード|(?:届いた|受信した|受け取った|認証システムの|認証アプリの|smsの)コード/g,
  },
  {
    language: 'zh',
    kinds:
      /密码|密碼|口令|密钥|密鑰|秘钥|私钥|私鑰|访问令牌|存取權杖|访问凭证|验证码|驗證碼|动态码|校验码|安全码|信用卡|银行卡|銀行卡|卡号|卡號|银行账号|身份证|身分證|助记词|助記詞|恢复短语|pin码|登录信息|登錄資訊|登入資訊|登录凭证|登录凭据/g,
  },
];

/**
 * Latin words that are secrets where a text in another script requests them, but not where it counts or names
 * them.
 */
export const UNSPACED_WEAK =
  /(?:(?<=[\u3040-\u30ff\u3400-\u9fff])(?:pin|token|pass|pw)(?![a-z0-9])|(?<![a-z0-9])(?:pin|pass|pw)(?=[\u3040-\u30ff\u3400-\u9fff])|token(?=[\u3040-\u30ff\u3400-\u9fff])|トークン|令牌)(?!の?(?:数|上限|名|長|番号|有効)|上限|限制|数|數|个数|长度|名|化|桶)/;
/** Words that turn a secret in another script into the name of something else. */
export const UNSPACED_NAMED =
  /(?:キー|トークン|シークレット|密钥|密鑰|令牌|凭证)(?:の|的)?(?:名前|名称|名稱|ラベル|表示名|用途|有効期限|有效期)/g;

/** Words that denote secrets where they are requested or stand alone, and often something else otherwise. */
export const WEAK: SecretTerms = createKinds(
  splitTerms('token tokens secret secrets pin pass pw mfa tan clave jeton mnemonic'),
  { ending: /(?= )/y },
);
/** Before the words above, these make a login label. */
export const OF_A_LOGIN =
  /^(?: (?:your|my|our|the|a|an|new|old|current|existing|login|user|admin|root|account|service|server|db|database|access|wifi|email|e|mail|smtp|ftp|ssh|card|sim|security|ihr|ihre|dein|deine|votre|ton|su|tu|la|el|le|das|die|der))*$/;
/** Those of the words above that have many other meanings after any other word. */
export const MANY_MEANINGS = /^ (?:pass|tan|clave|jeton|secrets|tokens|pin|mfa|pw)$/;

/** Before the words above, these mean paging, form protection or counts. */
export const HARMLESS_BEFORE =
  / (?:next|page|pagination|continuation|cursor|sync|delta|csrf|xsrf|progress|max|min|maximum|minimum|count|public|per|no|number|of)$/;

/** After these the words above are no secrets, even where they are requested. */
export const HARMLESS_WHEN_ASKED = / (?:next|page|pagination|continuation|cursor|sync|delta|csrf|xsrf|progress)$/;
/** Between these and a requesting verb, the words above are secrets in German, French and Spanish too. */
export const OF_A_PERSON =
  /^$| (?:(?:ihre?n?|deine?n?|votre|su|tu)(?: [^ ]+){0,2}|bitte|die|das|ihre|ihr|ihren|deine|dein|deinen|eure|le|la|votre|ton|ta|el|su|tu|tus|sus|un|una)$/;
export const ENDS_WEAK_ELSEWHERE =
  /^ (?:$|(?:hier|bitte|ein|an|ihrer|ihres|deiner|deines|der|des|fur|eingeben|eintippen|einfugen|angeben|nennen|mitteilen|de|du|d|ici|pour|del|para|aqui|que) )/;

/** What may follow the words above. Any other noun makes them part of its name: `secret santa`, `PIN color`. */
export const ENDS_WEAK =
  /^ (?:$|(?:for|from|of|to|in|on|at|and|or|that|which|you|used|we|is|are|here|below|now|again|please|value|string|text|digits?|contents?|with|as|by|first|then|ein|an|bitte) )/;
/** A password does not have a name. */
export const NAMED_AFTER = /^ (?:name|names|label|id) /;

/** Names of fields that are secrets as a whole, or by their end. */
export const FIELD_NAME =
  /^ (?:pass|pw|pwd|psw|pswd|passwd|cc|ccn|ccnum|ccnumber|cvv|cvc|csc|otp|totp|mfa|tfa|2fa|ssn|pin|tan|pass key|creds?|secret|token|mnemonic|pat|mdp|clave) $/;
export const FIELD_END =
  /^(?: (?:user|usr|db|database|login|admin|root|my|your|smtp|imap|ftp|ssh|wifi|email|mail|account|acct|old|new|current|confirm|repeat|github|gitlab|aws|card|sim|atm|bank|security|app|sms|sudo))+ (?:pass|pw|psw|pin|tan|cc|mfa|otp|code|clave) $/;

/** Words that turn a preceding secret into the name of something else: `password reset link`, `API key name`. */
export const NAMING_AFTER = new RegExp(
  `^ (?:${either(`
    name names named count counts limit limits length lengths policy policies reset resets id ids identifier
    identifiers type types kind kinds expiry expiration rotation rotations manager managers setting settings usage
    budget strength requirement requirements rule rules status state label labels alias aliases age scope scopes
    owner owners provider providers vendor vendors vault vaults store storage history audit authentication auth
    management generator prefix change changes recovery update updates list lists metadata brand network issuer
    country currency pricing cost costs price window quota rate total consumption symbol contract based protected
    protection format formats free option options method methods lifetime purpose description limitations per
  `)}) `,
);
/** Nouns that denote something other than the secret after them: `name of the API key`. */
export const NAMING_BEFORE = new RegExp(
  `^(?:${either(`
    name names label labels title owner owners type types kind count counts purpose reason reasons scope scopes
    status state age expiry expiration lifetime length project region provider providers issuer policy policies
    description list rotation revocation deletion creation id ids identifier alias location path usage use user users
    strength link page email address date note comment environment prefix maximum minimum amount
  `)})$`,
);
/** `number of tokens`, but not `number of your card`. */
export const PLURAL = /s$/;

/** Verbs for actions on a secret that do not request it. */
const ACTIONS = `
  rotat revok reset resett delet remov renew replac regenerat disabl enabl deactivat invalidat forgot forget
  forgotten updat chang manag list stor sav encrypt mask redact audit recover los lost leak expos compromis keep
  kept hold held contain protect issu generat creat expir use using rotat hash expir cach log detect find found scan
  purg retir archiv
`;
export const ACTION = new RegExp(`^(?:${either(ACTIONS)})(?:e|es|s|ed|d|ing|ting|ting|ped|n)?$`);

/** Verbs that request a secret. */
const REQUESTS = `
  enter reenter typ retyp past insert provid suppl supply giv given send sent shar submit submitt input confirm
  tell told writ written put putt plac drop fill reveal disclos show shown verif verify repeat specif specify stat
  say said add attach leav upload post report hand have get gett see know need requir request want ask expect
  obtain collect receiv read dictat spell mention includ register lack miss await authenticat unlock what whats
  present furnish key deliver surrender communicat forward reply respond answer
`;
export const REQUEST = new RegExp(`^(?:${either(REQUESTS)})(?:e|es|s|ed|d|ing|ting|y|ies|ied|ying)?$`);
/** A new secret is also requested, where people choose it themselves. */
export const CHOICE = /^(?:choos|pick|set|defin|creat|chang|updat|reset|renew)(?:e|es|s|ting|ing)?$/;
export const CHOSEN = /pass ?w|passphrase|pass ?code|pin/;
export const CLAUSE_WORD =
  /^(?:that|which|whose|who|when|where|whether|if|because|while|until|since|after|before|so|although)$/;
/** Between verb and secret, as in `log in with your password`. */
export const LOGIN =
  / (?:log|logging|login|sign|signing|signin|authenticate|authenticating|unlock|continue|proceed|identify|prove)(?: [^ ]+){0,3}? (?:with|using|by|via|through)(?: (?:your|my|our|the|a|an|this|that))?(?: [^ ]+){0,2}$/;

/** As in `password is required`, `code goes here`. */
export const NEEDED =
  / (?:needed|required|necessary|requested|missing|mandatory|wanted|expected|awaited|entered|typed|provided|supplied|submitted|pasted|filled|given|told|disclosed|revealed|goes|belongs|here|below|underneath|please|pls|characters?|chars?|digits?|letters?|symbols?|at least)(?= )/;
export const STATEMENT =
  /^(?: (?:for|of|on|from|in|at|to) [^ ]+(?: [^ ]+)?| [^ ]+)? (?:is|are|was|were|has|have|had|will|should|must|can|could|may|might|would|cannot|expires?|expired|changed|works?|worked|failed|fails|leaked|does|did|doesn t|isn t|wasn t|hasn t|won t|can t) (?!(?:what|the one|all|something|our|my)(?= ))[^ ]+/;
export const WHICH_ONE = /^ (?:do|does|did|should|shall|would|will|can|may) (?:you|we|i|it|they) (?:[^ ]+ ){0,4}?/;
export const TO_ACT = /^ to (?:be )?([^ ]+) /;
/** A question about a secret that is answered by yes or no. */
export const YES_OR_NO =
  /^ (?:please )?(?:is|are|was|were|has|have|had|should|shall|did|does|do|must|will) (?!(?:you|i|we) (?:have|give|get|know)(?= ))/;

/** A denial and what it denies: group 1, or group 2 after `to`. */
export const DENIAL_EN =
  / (?:never|not|dont|don t|wont|won t|mustn t|shouldn t|doesn t|cannot|nobody|no one|noone)(?: (?:ever|be|to|will|would|should|may|can|you|we|us|here|in this form)){0,3} ([^ ]+)(?: (?:you|anyone|anybody|users|customers|people|them))?(?: to ([^ ]+))?(?= )/g;
export const UNNEEDED_EN =
  /^(?: (?:for|of|on) [^ ]+)?(?: (?:is|are|was|were|will|be))* (?:not|never|isn t|aren t|won t be|will not be)(?: (?:ever|be))* (?:needed|required|necessary|asked|requested|stored|shared|collected|sent|logged|saved|kept|wanted)(?= )/;
export const NONE_EN = / (?:no|without|without a|without any|without the|not a|neither) ?$/;
/** With these words a sentence that contains `not` may still request a secret. */
export const VOIDS_EN =
  / (?:forget|forgot|hesitate|worry|mind|fail|only|until|unless|if|when|before|except|but|twice|again|once|wrong|wrongly|incorrectly|just|instead|otherwise|more|than|else|elsewhere|why|cannot continue|later|yet|because|delay|refuse|skip|omit|afraid)(?= )/;

/** The grammar of a language that separates words by blanks. */
export type Grammar = {
  readonly request: RegExp;
  readonly denial: RegExp;
  /** What may stand between a denial and the secret, besides requests. */
  readonly between: RegExp;
  /** With these words a sentence with a denial may still request a secret. */
  readonly voids: RegExp;
  /** What happens or happened to a secret, or what else it names. */
  readonly other: RegExp;
};

export const GRAMMARS: Readonly<Record<'de' | 'fr' | 'es', Grammar>> = {
  de: {
    request: wordPattern(`
      eingeben eingegeben einzugeben gib gebt geben gebe angeben anzugeben eintippen tippen tippe nennen nenne
      senden sende schicken schicke mitteilen verraten verrate eintragen trage tragen hinterlegen bestatigen
      bestatige einfugen fugen lautet benotigen benotigt brauchen braucht brauche erforderlich notig fehlt teilen
      teile fragen frage gefragt erfragen verlangen verlangt festlegen wahlen
    `),
    denial: wordPattern('nie niemals nicht kein keine keinen keines keinesfalls nirgends'),
    between: wordPattern(`
      nach um ihr ihre ihrem ihren ihres dein deine deinem deinen hier in an dieses diesem formular feld chat jemals
      sie wir dir ihnen uns du das die der den dem ein eine einem einen wird werden ist sind mit jemandem niemandem
    `),
    voids: wordPattern(`
      vergessen vergiss zogern wenn falls aber sondern ausser bevor erst nur sonst warum solange bis anderswo
      woanders mehr zweimal ohne weiter falsch und oder dann danach
    `),
    other: wordPattern(`
      zurucksetzen zurucksetzung zuruckgesetzt vergessen geandert andern rotieren rotiert widerrufen loschen geloscht
      erneuert erneuern abgelaufen lauft gespeichert verschlusselt wurde wurden richtlinie name namen typ anzahl
      lange dauer soll sollen
    `),
  },
  fr: {
    request: wordPattern(`
      saisir saisissez saisis entrer entrez entre indiquer indiquez indique fournir fournissez fournis donner donnez
      donne envoyer envoyez communiquer communiquez tapez taper inserer inserez collez coller partager partagez
      confirmer confirmez choisissez demander demandera demanderons demandons demandez quel quelle besoin requis
      requise necessaire obligatoire manque renseigner renseignez
    `),
    denial: wordPattern('jamais pas aucun aucune inutile'),
    between: wordPattern(`
      jamais pas votre vos ton le la les de du d ici dans ce formulaire champ nous vous ne n a personne est
      sera
    `),
    voids: wordPattern(`
      oubliez oublie oublier hesitez hesite si sauf mais avant sinon que qu tant pourquoi ailleurs seulement deux
      sans plus continuer et ou puis ensuite
    `),
    other: wordPattern(`
      reinitialiser reinitialisation reinitialise oublie change changer modifie expire expirera revoque revoquer
      renouveler supprimer supprime rotation stocke chiffre politique nom type nombre longueur ete
    `),
  },
  es: {
    request: wordPattern(`
      introduzca introduce introducir ingrese ingresa ingresar escriba escribe escribir proporcione proporciona
      proporcionar indique indica envie envia enviar dar deme dime diga comparta comparte compartir compartas teclee
      pegue pega confirme confirma elija pedimos pediremos pedir pide solicitamos solicitaremos cual necesitamos
      necesito necesita necesaria necesario requerida requerido obligatoria obligatorio falta facilite rellene
      complete
    `),
    denial: wordPattern('no nunca jamas ningun ninguna'),
    between: wordPattern(`
      su sus tu tus la el las los le les te se aqui en este formulario campo con nadie a es sera son nunca
    `),
    voids: wordPattern(`
      olvide olvides olvidar dude dudes si salvo excepto pero antes solo sino hasta mas por otro otra dos sin
      continuar y o e luego despues
    `),
    other: wordPattern(`
      restablecer restablecimiento restablecida olvidada olvido cambiada cambiar cambio caduca caducada caduco
      revocar revocada rotar renovar eliminar eliminada guardada cifrada politica nombre tipo longitud sido
    `),
  },
};

/** Actions that were already completed, and so are not requested. */
export const UNSPACED_DONE =
  /已经?(?:发送|提供|提交|填写|分享|确认)|(?:送信|入力|提供|共有)(?:しました|されました|済み)/g;

/** The grammar of a language that does not separate words. */
type UnpartedGrammar = Pick<Grammar, 'request' | 'voids' | 'other'> & {
  /** A denial together with what it denies. */
  readonly denied: RegExp;
};

const ASKS_JA =
  '入力|教え|記入|提供|送信|送って|送り|必要|何です|なんです|は何|お知らせ|知らせて|貼り付け|書いて|共有|聞かせ|打ち込|お願い|確認させ|求め|尋ね|おたずね|伺う';
const ASKS_ZH =
  '输入|輸入|提供|填写|填寫|告诉|告訴|发送|发给|發送|给我|给出|需要|是什么|是多少|什么是|必填|粘贴|提交|写下|说出|分享|确认您的|键入|设置您|索要|询问|请问|缺少|透露';

export const UNSPACED_GRAMMARS: Readonly<Record<'ja' | 'zh', UnpartedGrammar>> = {
  ja: {
    request: new RegExp(ASKS_JA, 'g'),
    denied: new RegExp(
      `(?:${ASKS_JA})(?:[すしるはがをもにとこめ]|ること|される){0,6}(?:ないで|しない|しません|ません|不要|ありません|必要はな)|(?:は|が)不要`,
    ),
    voids: /場合|なければ|ないと|忘れ|しか|以外|だけ|まで|ならば|ても|いけ|なりません|できません|進め|てください(?!$)/,
    other:
      /リセット|再設定|変更され|変更しました|更新|ローテーション|ローテート|失効|削除|期限|漏洩|長さ|ポリシー|の名前|キー名|の数|の種類|保存され|暗号化/,
  },
  zh: {
    request: new RegExp(ASKS_ZH, 'g'),
    denied: new RegExp(
      `(?:不要|请勿|切勿|勿|无需|无须|不需要?|不必|绝不会?|从不会?|不会|永不|不用)(?:在(?:此处?|这里|聊天中|表单中|这个表单中))?(?:向(?:任何人|他人|别人|我们|您))?(?:${ASKS_ZH}|您的|密码|要求|保存)`,
    ),
    voids: /如果|若|除非|否则|但|只|才|忘|之前|不然|其他|别处|为什么|两次|无法|不能|继续|担心|犹豫/,
    other: /重置|已|过期|過期|更改|修改|轮换|吊销|撤销|删除|泄露|策略|长度|名称|数量|管理|类型|找回|加密|有效期/,
  },
};
