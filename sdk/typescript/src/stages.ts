import type { Session } from "./session.js";

const FINAL_CODES = new Set([1000, 1008, 1009, 4403, 4404]); // it is not opened again

/** Follows the WebSocket of a session until it ends. It is optional: without it no stages are shown. */
export class Stages {
  private socket: WebSocket | null = null;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private isOver = false;

  constructor(
    private readonly session: Session,
    private readonly show: (stage: string) => void,
  ) {
    this.open();
  }

  close(): void {
    this.isOver = true;
    if (this.timer !== null) clearTimeout(this.timer);
    this.socket?.close(1000);
  }

  private open(): void {
    const base = this.session.baseUrl.replace(/^http/, "ws");
    this.socket = new WebSocket(`${base}/ws/gameSession/refresh/${this.session.gsid}${this.session.proof}`);
    this.socket.onmessage = (message) => this.read(String(message.data));
    this.socket.onclose = (closed) => {
      if (!this.isOver && !FINAL_CODES.has(closed.code)) this.timer = setTimeout(() => this.open(), 1000);
    };
  }

  private read(text: string): void {
    let event: { event?: string; stage?: string };
    try {
      event = JSON.parse(text);
    } catch {
      return; // nothing that this version knows
    }
    if (event.event === "stage" && event.stage) this.show(event.stage);
  }
}
