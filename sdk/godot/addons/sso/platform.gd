# What Godot 4 does otherwise than Godot 3, for which godot3/addons/sso/platform.gd has the same functions.

const UNIX = ["Linux", "FreeBSD", "NetBSD", "OpenBSD", "BSD", "macOS"]


static func now_ms() -> int:
	return Time.get_ticks_msec()


static func unix_time() -> int:
	return int(Time.get_unix_time_from_system())


static func encode(value) -> String:
	return JSON.stringify(value)


# Returns the value of a JSON text, or null.
static func decode(text: String):
	var json = JSON.new()
	return json.data if json.parse(text) == OK else null


static func to_bytes(text: String) -> PackedByteArray:
	return text.to_utf8_buffer()


static func start(thread: Thread, object: Object, method: String) -> void:
	thread.start(Callable(object, method))


static func listen(source: Object, name: String, object: Object, method: String) -> void:
	source.connect(name, Callable(object, method))


# Runs a program to its end. Returns its exit code.
static func run(program: String, arguments: Array, output = null) -> int:
	return OS.execute(program, arguments, [] if output == null else output)


static func redraw(item: CanvasItem) -> void:
	item.queue_redraw()


static func file_exists(path: String) -> bool:
	return FileAccess.file_exists(path)


static func rename_file(from: String, to: String) -> bool:
	return DirAccess.rename_absolute(from, to) == OK


static func remove_file(path: String) -> void:
	DirAccess.remove_absolute(path)


# Makes a folder that nobody else on this computer may open. Other systems keep the folders of players apart by
# themselves.
static func make_private_folder(path: String) -> void:
	DirAccess.make_dir_recursive_absolute(path)
	if OS.get_name() in UNIX:
		run("chmod", ["700", ProjectSettings.globalize_path(path)])


class Socket:
	var _peer := WebSocketPeer.new()

	func open(url: String) -> bool:
		return _peer.connect_to_url(url) == OK

	# Returns the texts that have come.
	func poll() -> Array:
		var texts = []
		_peer.poll()
		while _peer.get_available_packet_count() > 0:
			texts.append(_peer.get_packet().get_string_from_utf8())
		return texts

	func is_closed() -> bool:
		return _peer.get_ready_state() == WebSocketPeer.STATE_CLOSED

	# Returns -1 if the connection was lost.
	func close_code() -> int:
		return _peer.get_close_code()

	func close() -> void:
		_peer.close(1000)
		_peer.poll()
