/** Where a game keeps its token and its guest key. On Node, write one that suits your game. */
export interface Store {
  get(name: string): Promise<string | null>;
  /** Null removes the value. */
  set(name: string, value: string | null): Promise<void>;
}

/** The storage of the browser, for one origin. If it is switched off or full, values last as long as the page. */
export class BrowserStore implements Store {
  private readonly unsaved = new Map<string, string | null>();

  constructor(private readonly prefix = "sso.") {}

  async get(name: string): Promise<string | null> {
    const unsaved = this.unsaved.get(name);
    if (unsaved !== undefined) return unsaved;
    try {
      return localStorage.getItem(this.prefix + name);
    } catch {
      return null;
    }
  }

  async set(name: string, value: string | null): Promise<void> {
    try {
      if (value === null) localStorage.removeItem(this.prefix + name);
      else localStorage.setItem(this.prefix + name, value);
      this.unsaved.delete(name);
    } catch {
      this.unsaved.set(name, value);
    }
  }
}

/** Keeps nothing beyond the run of the game. */
export class MemoryStore implements Store {
  private readonly values = new Map<string, string>();

  async get(name: string): Promise<string | null> {
    return this.values.get(name) ?? null;
  }

  async set(name: string, value: string | null): Promise<void> {
    if (value === null) this.values.delete(name);
    else this.values.set(name, value);
  }
}
