/** How long a layer took in the last run. */
export interface LayerTime { type: string; name: string; ms: number }
/** An array: its sizes, outermost first, and its values in that order. */
export interface Tensor { sizes: number[]; values: Float32Array }
export interface PixelOptions {
  /** What the model takes. Default: its Input layer's. */
  width?: number; height?: number;
  /** Default "RGB". "GRAY" makes one channel. */
  order?: "RGB" | "BGR" | "GRAY";
  /** Of values from 0 to 255: (x - mean) * norm, a number for each channel. Default: 0 and 1. */
  mean?: number[]; norm?: number[];
}
export interface LoadOptions {
  /** The text of a `.param`, or the bytes of a text or binary one. */
  param: string | Uint8Array;
  /** The `.bin`; may be missing where no layer has weights. */
  bin?: Uint8Array;
}
/** A loaded model. One run at a time. */
export class Net {
  readonly inputs: string[];
  readonly outputs: string[];
  /** Sizes of inputs that the model's text says, outermost first; 0 where it does not. */
  readonly inputSizes: Record<string, number[]>;
  /** The layers of the last run, in order. */
  readonly times: LayerTime[];
  /** Gives an input by name. Throws where the model has no such input. */
  input(name: string, tensor: { sizes: number[]; values: ArrayLike<number> }): void;
  /** Gives a picture as input: resized, its colours in the model's order, normalised. */
  pixels(name: string, image: ImageData, options?: PixelOptions): void;
  /** Runs the model; all outputs by name. Throws with the engine's message. */
  run(): Record<string, Tensor>;
  /** Frees the model's memory; the object is of no use afterwards. */
  free(): void;
}
export interface Engine {
  load(options: LoadOptions): Net;
  /** How many threads a run takes. */
  readonly threads: number;
}
export interface EngineOptions {
  /** The bytes of `quoll-core.wasm`, where it is not beside the module; one thread then. */
  wasm?: ArrayBuffer | Uint8Array;
  /**
   * At most so many threads. Default: the processors, 8 at most. More than one needs `quoll-core-threads.*` beside the module
   * and a page that is cross-origin isolated, which alone may share memory; elsewhere one thread runs.
   */
  threads?: number;
}
/** Starts the engine. */
export function quoll(options?: EngineOptions): Promise<Engine>;
export default quoll;
