// How binary formats begin, by the media types that claim them. Bytes that do not begin as they claim are no
// media, and are read as text. Only the beginning is known here: a real header may be followed by anything.
// Source: WHATWG MIME Sniffing §6; the specifications of the formats.

/** A beginning: Latin-1 text at an offset; every one of a list must be there. */
type Signature = readonly (readonly [at: number, bytes: string])[];
type Format = { readonly types: RegExp; readonly signatures: readonly Signature[] };

function starts(...texts: readonly string[]): readonly Signature[] {
  return texts.map((text) => [[0, text]]);
}

const RIFF = [0, 'RIFF'] as const;
const FORM = [0, 'FORM'] as const;
/** MPEG audio of layer II or III, and AAC: frame headers, which have no longer mark. */
const MP3 = starts(
  ...'\xfa\xfb\xfc\xfd\xf2\xf3\xf4\xf5\xe2\xe3'.split('').map((one) => `\xff${one}`),
);
const AAC = starts('\xff\xf0', '\xff\xf1', '\xff\xf8', '\xff\xf9', 'ADIF');
const BASE_MEDIA: readonly Signature[] = [
  'ftyp',
  'moov',
  'mdat',
  'styp',
  'wide',
  'free',
  'skip',
].map((box) => [[4, box]]);
const MATROSKA = starts('\x1aE\xdf\xa3');
const OGG = starts('OggS');
const ZIP = starts('PK\x03\x04', 'PK\x05\x06', 'PK\x07\x08');
const COMPOUND = starts('\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1');

const FORMATS: readonly Format[] = [
  { types: /^image\/(?:x-)?(?:png|apng)$/, signatures: starts('\x89PNG\r\n\x1a\n') },
  { types: /^image\/p?jpe?g$/, signatures: starts('\xff\xd8\xff') },
  { types: /^image\/gif$/, signatures: starts('GIF87a', 'GIF89a') },
  { types: /^image\/webp$/, signatures: [[RIFF, [8, 'WEBP']]] },
  {
    types: /^image\/(?:x-(?:ms-)?)?bmp$/,
    signatures: [
      [
        [0, 'BM'],
        [6, '\0\0\0\0'],
      ],
    ],
  },
  { types: /^image\/tiff(?:-fx)?$/, signatures: starts('II*\0', 'MM\0*', 'II+\0', 'MM\0+') },
  { types: /^image\/(?:x-icon|vnd\.microsoft\.icon|ico)$/, signatures: starts('\0\0\x01\0') },
  { types: /^image\/(?:avif|hei[cf])(?:-sequence)?$/, signatures: [[[4, 'ftyp']]] },
  { types: /^image\/jxl$/, signatures: starts('\xff\x0a', '\0\0\0\x0cJXL \r\n\x87\n') },
  { types: /^image\/jp[2xm]$/, signatures: starts('\0\0\0\x0cjP  \r\n\x87\n') },
  { types: /^image\/(?:vnd\.adobe\.photoshop|x-photoshop)$/, signatures: starts('8BPS') },

  { types: /^audio\/(?:vnd\.wave|wave?|x-wav|x-pn-wav)$/, signatures: [[RIFF, [8, 'WAVE']]] },
  { types: /^audio\/(?:x-)?(?:mpeg|mp3|mpeg3|mpa)$/, signatures: [...starts('ID3'), ...MP3] },
  { types: /^audio\/(?:x-)?(?:aac|aacp|hx-aac-adts)$/, signatures: AAC },
  { types: /^audio\/(?:x-)?flac$/, signatures: starts('fLaC') },
  { types: /^audio\/(?:ogg|opus|vorbis|speex)$/, signatures: OGG },
  { types: /^audio\/(?:x-)?(?:mp4|m4a|3gpp2?)$/, signatures: BASE_MEDIA },
  { types: /^(?:audio|video)\/(?:webm|(?:x-)?matroska)$/, signatures: MATROSKA },
  {
    types: /^audio\/(?:x-)?aiff$/,
    signatures: [
      [FORM, [8, 'AIFF']],
      [FORM, [8, 'AIFC']],
    ],
  },
  { types: /^audio\/(?:x-)?midi?$/, signatures: starts('MThd\0\0\0') },
  { types: /^audio\/amr(?:-wb)?$/, signatures: starts('#!AMR') },
  { types: /^audio\/(?:basic|au|x-au)$/, signatures: starts('.snd\0') },
  { types: /^audio\/x-caf$/, signatures: starts('caff\0') },

  { types: /^video\/(?:mp4|quicktime|x-m4v|3gpp2?)$/, signatures: BASE_MEDIA },
  { types: /^(?:video|application)\/ogg$/, signatures: OGG },
  { types: /^video\/(?:x-msvideo|avi|msvideo)$/, signatures: [[RIFF, [8, 'AVI ']]] },
  { types: /^video\/mpeg$/, signatures: starts('\0\0\x01\xba', '\0\0\x01\xb3') },
  {
    types: /^video\/mp2t$/,
    signatures: [
      [
        [0, 'G'],
        [188, 'G'],
      ],
    ],
  },
  { types: /^video\/(?:x-flv|flv)$/, signatures: starts('FLV\x01') },
  { types: /^(?:video|audio)\/x-ms-(?:wmv|wma|asf)$/, signatures: starts('0&\xb2u\x8ef\xcf\x11') },

  { types: /^application\/(?:x-)?pdf$/, signatures: starts('%PDF-') },
  {
    types:
      /^application\/(?:(?:x-)?zip(?:-compressed)?|epub\+zip|java-archive|vnd\.(?:openxmlformats-officedocument|oasis\.opendocument|ms-(?:excel|word|powerpoint)\.).{1,100}|vnd\.android\.package-archive)$/,
    signatures: ZIP,
  },
  {
    types: /^application\/(?:msword|vnd\.(?:ms-(?:excel|powerpoint|outlook)|visio))$/,
    signatures: COMPOUND,
  },
  { types: /^application\/(?:x-)?gzip$/, signatures: starts('\x1f\x8b\x08') },
  { types: /^application\/(?:x-)?bzip2?$/, signatures: starts('BZh') },
  { types: /^application\/(?:x-)?xz$/, signatures: starts('\xfd7zXZ\0') },
  { types: /^application\/(?:x-)?zstd$/, signatures: starts('(\xb5/\xfd') },
  { types: /^application\/(?:x-)?7z-compressed$/, signatures: starts('7z\xbc\xaf\x27\x1c') },
  {
    types: /^application\/(?:vnd\.rar|x-rar(?:-compressed)?)$/,
    signatures: starts('Rar!\x1a\x07'),
  },
  { types: /^application\/(?:x-)?tar$/, signatures: [[[257, 'ustar']]] },
  { types: /^(?:font\/woff2?|application\/font-woff)$/, signatures: starts('wOFF', 'wOF2') },
  {
    types: /^(?:font\/(?:otf|ttf|sfnt|collection)|application\/x-font-(?:otf|ttf))$/,
    signatures: starts('OTTO\0', '\0\x01\0\0', 'true\0', 'ttcf\0'),
  },
  { types: /^application\/wasm$/, signatures: starts('\0asm\x01\0\0\0') },
  {
    types: /^application\/(?:vnd\.sqlite3|x-sqlite3)$/,
    signatures: starts('SQLite format 3\0'),
  },
  { types: /^application\/(?:vnd\.apache\.parquet|x-parquet)$/, signatures: starts('PAR1') },
  { types: /^application\/vnd\.apache\.arrow\.file$/, signatures: starts('ARROW1\0\0') },
  { types: /^application\/x-hdf5?$/, signatures: starts('\x89HDF\r\n\x1a\n') },
];

/** Types that claim no format: the bytes may be any of those above. */
const CLAIMS_NOTHING = /^(?:(?:application|binary)\/octet-stream)?$/;
/** A byte order mark says that it is text, whatever it is like besides. */
const TEXT_MARKS = starts('\xef\xbb\xbf', '\xff\xfe', '\xfe\xff', '\0\0\xfe\xff');

/** Whether bytes begin as the type that they claim; `head` is their beginning. */
export function beginsAsClaimed(type: string, head: Uint8Array): boolean {
  if (isAny(TEXT_MARKS, head)) return false;
  const claimed = FORMATS.filter(({ types }) => CLAIMS_NOTHING.test(type) || types.test(type));
  return claimed.some(({ signatures }) => isAny(signatures, head));
}

function isAny(signatures: readonly Signature[], head: Uint8Array): boolean {
  return signatures.some((parts) => parts.every(([at, bytes]) => standsAt(head, at, bytes)));
}

function standsAt(head: Uint8Array, at: number, bytes: string): boolean {
  for (let index = 0; index < bytes.length; index++) {
    if (head[at + index] !== bytes.charCodeAt(index)) return false;
  }
  return true;
}
