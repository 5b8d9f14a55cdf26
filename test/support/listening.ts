// Reads an answer that streams, on and on, and shows what has come of it so far.

export type Listening = { text(): string; isOver(): boolean; isCut(): boolean; leave(): void };

/** Begins to read a stream; throws where there is none. */
export async function listenOn(response: Response): Promise<Listening> {
  if (response.status !== 200)
    throw new Error(`no stream: ${response.status} ${await response.text()}`);
  let text = '';
  let isOver = false;
  const reader = response.body?.getReader();
  async function read(): Promise<void> {
    const decoder = new TextDecoder();
    for (let next = await reader?.read(); next?.done === false; next = await reader?.read())
      text += decoder.decode(next.value);
  }
  let isCut = false;
  void read()
    .catch(() => {
      isCut = true;
    })
    .finally(() => {
      isOver = true;
    });
  return {
    text: () => text,
    isOver: () => isOver,
    /** Its connection broke off before its end. */
    isCut: () => isCut,
    leave: () => void reader?.cancel().catch(() => undefined),
  };
}
