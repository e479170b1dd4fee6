# What Godot 3 does otherwise than Godot 4.

const UNIX = ["X11", "Server", "OSX"]


static func now_ms() -> int:
	return OS.get_ticks_msec()


static func unix_time() -> int:
	return OS.get_unix_time()


static func encode(value) -> String:
	return JSON.print(value)


# Returns the value of a JSON text, or null.
static func decode(text: String):
	var parsed = JSON.parse(text)
	return parsed.result if parsed.error == OK else null


static func to_bytes(text: String) -> PoolByteArray:
	return text.to_utf8()


static func start(thread: Thread, object: Object, method: String) -> void:
	thread.start(object, method)


static func listen(source: Object, name: String, object: Object, method: String) -> void:
	source.connect(name, object, method)


# Runs a program to its end. Returns its exit code. With an array for its output, a shell starts it.
static func run(program: String, arguments: Array, output = null) -> int:
	if output == null:
		return OS.execute(program, arguments, true)
	return OS.execute(program, arguments, true, output)


static func redraw(item: CanvasItem) -> void:
	item.update()


static func file_exists(path: String) -> bool:
	return File.new().file_exists(path)


static func rename_file(from: String, to: String) -> bool:
	return Directory.new().rename(from, to) == OK


static func remove_file(path: String) -> void:
	Directory.new().remove(path)


# Makes a folder that nobody else on this computer may open. Other systems keep the folders of players apart by
# themselves.
static func make_private_folder(path: String) -> void:
	Directory.new().make_dir_recursive(path)
	if OS.get_name() in UNIX:
		run("chmod", ["700", ProjectSettings.globalize_path(path)])


class Socket:
	var _client = WebSocketClient.new()
	var _code = -1
	var _is_closed = false

	func open(url: String) -> bool:
		_client.connect("server_close_request", self, "_on_close_request")
		_client.connect("connection_closed", self, "_on_closed")
		_client.connect("connection_error", self, "_on_closed")
		return _client.connect_to_url(url) == OK

	# Returns the texts that have come.
	func poll() -> Array:
		var texts = []
		_client.poll()
		if _client.get_connection_status() == NetworkedMultiplayerPeer.CONNECTION_CONNECTED:
			var peer = _client.get_peer(1)
			while peer.get_available_packet_count() > 0:
				texts.append(peer.get_packet().get_string_from_utf8())
		return texts

	func is_closed() -> bool:
		return _is_closed

	# Returns -1 if the connection was lost.
	func close_code() -> int:
		return _code

	func close() -> void:
		_client.disconnect_from_host(1000)
		_client.poll()

	func _on_close_request(code, _reason):
		_code = code

	func _on_closed(_was_clean = false):
		_is_closed = true
