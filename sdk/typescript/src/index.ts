export { type Ban, type Reason, SignInFailed } from "./failure.js";
export { Game, type GameOptions, type Player, type SignInOptions } from "./game.js";
export { BrowserStore, MemoryStore, type Store } from "./store.js";
