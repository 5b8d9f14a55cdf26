// One requirement: what must hold, where that is written, and the id by which tests cite it.

export type Requirement = {
  /** One to three letters for the part and a number: `D-01`. Cited in test titles in brackets. */
  readonly id: string;
  /** A page of this repository with its section, or a public specification. */
  readonly source: string;
  /** What the running system does, as a statement that a test can contradict. */
  readonly behaviour: string;
};
