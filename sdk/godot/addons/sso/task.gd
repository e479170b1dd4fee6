# A call of the game while it runs in a thread of its own.

const Platform = preload("platform.gd")

const LONGEST_PAUSE_MS = 50  # between two looks at a socket

var is_cancelled := false  # set by the game
var is_exclusive := true
var stages = null  # followed while the task waits
var _thread = null
var _node = null
var _object = null
var _method := ""
var _arguments := []


# Calls a method in a thread, then the node's _finish(task, method, outcome) in its own.
func start(node, object, method: String, arguments: Array) -> void:
	_node = node
	_object = object
	_method = method
	_arguments = arguments
	_thread = Thread.new()
	Platform.start(_thread, self, "_run")


func join() -> void:
	if _thread != null:
		_thread.wait_to_finish()
		_thread = null
	_object = null  # it refers to this task; a circle would never be freed


# Sleeps, and looks at the WebSocket. Returns false if the player gave up.
func pause(milliseconds: int) -> bool:
	if stages != null:
		stages.poll()
	OS.delay_msec(milliseconds)
	return not is_cancelled


# Waits for some seconds. Returns false if the player gave up.
func wait(seconds: float) -> bool:
	var end = Platform.now_ms() + int(seconds * 1000)
	while not is_cancelled and Platform.now_ms() < end:
		pause(int(clamp(end - Platform.now_ms(), 1, LONGEST_PAUSE_MS)))
	return not is_cancelled


func _run(_nothing = null) -> void:
	var outcome = _object.callv(_method, _arguments)
	_node.call_deferred("_finish", self, _method, outcome)
