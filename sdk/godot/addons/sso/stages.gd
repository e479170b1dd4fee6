# Follows the WebSocket of a session. It is optional: without it no stages are shown.

const Platform = preload("platform.gd")

const FINAL_CODES = [1000, 1008, 1009, 4403, 4404]  # it is not opened again
const AGAIN_MS = 1000
const SILENCE_MS = 25000  # heartbeats come every five seconds

var _url := ""
var _node = null
var _socket = null
var _open_at := 0
var _heard_at := 0
var _is_over := false


func _init(url, node):
	_url = url
	_node = node


# Opens the WebSocket if it is time, reads what has come, and shows it.
func poll() -> void:
	if _is_over:
		return
	var now = Platform.now_ms()
	if _socket == null:
		if now >= _open_at:
			_socket = Platform.Socket.new()
			_heard_at = now
			if not _socket.open(_url):
				_lose(now)
		return
	for text in _socket.poll():
		_heard_at = now
		_read(text)
	if _socket.is_closed():
		_is_over = _socket.close_code() in FINAL_CODES
		_lose(now)
	elif now - _heard_at > SILENCE_MS:
		_socket.close()
		_lose(now)


func close() -> void:
	_is_over = true
	if _socket != null:
		_socket.close()
		_socket = null


func _lose(now: int) -> void:
	_socket = null
	_open_at = now + AGAIN_MS


func _read(text: String) -> void:
	var event = Platform.decode(text)
	if typeof(event) == TYPE_DICTIONARY and event.get("event") == "stage" and event.get("stage"):
		_node.call_deferred("emit_signal", "stage_changed", str(event.stage))
