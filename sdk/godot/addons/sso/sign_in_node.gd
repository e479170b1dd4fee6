# The node SignIn without its properties, which each version of Godot declares in its own way (sign_in.gd).
extends Node

# The link to open, or to show as a QR code, and the words to show next to it.
signal show_link(url, words)
# What the player does in the browser: "opened", "signing_in", "second_factor", "confirmed" or "denied".
signal stage_changed(stage)
# The player: a dictionary with user_id, nick, guest, jwt and linked.
signal signed_in(player)
signal renewed(player)
signal signed_out
signal checked(application_id, rule, allow)
# Why a call did not succeed: a dictionary with reason, message, record and ban.
signal failed(failure)

const Failure = preload("failure.gd")
const Game = preload("game.gd")
const Store = preload("store.gd")
const Task = preload("task.gd")

var player := {}  # of the last sign-in; empty if nobody is signed in
var _tasks := []
var _store = null


# Signs the player in with a browser. Like all calls, it returns OK, or ERR_BUSY while another sign-in is under way.
func sign_in() -> int:
	return _begin("sign_in", [])


# Signs a guest in with a browser. The player keeps what the guest has.
func link() -> int:
	return _begin("link", [player])


# Signs the player in with the stored token, without a browser. `failed` with sign_in_needed: call sign_in.
func resume(tries: int = 3) -> int:
	return _begin("resume", [tries])


# Gets new tokens before the present ones end.
func renew() -> int:
	return _begin("renew", [])


# Signs a guest in with the key of this device, which is made at the first call.
func sign_in_as_guest() -> int:
	return _begin("sign_in_as_guest", [])


# Signs the player in with the ticket of a store, such as "steam".
func sign_in_with_ticket(provider: String, ticket) -> int:
	return _begin("sign_in_with_ticket", [provider, ticket])


# Asks whether the player may do something. Several questions may be under way.
func check(application_id: int, rule: String) -> int:
	return _begin("check", [player, application_id, rule], false)


# Forgets the player and ends the sign-in. The key of a guest stays: it is the only way back to the guest's progress.
func sign_out() -> int:
	var error = _begin("sign_out", [])
	if error == OK:
		player = {}
	return error


# Ends the sign-in that is under way, with `failed` and the reason cancelled. The link is of no use then.
func cancel() -> void:
	for task in _tasks:
		if task.is_exclusive:
			task.is_cancelled = true


func is_busy() -> bool:
	for task in _tasks:
		if task.is_exclusive:
			return true
	return false


func _begin(method: String, arguments: Array, is_exclusive: bool = true) -> int:
	if is_exclusive and is_busy():
		return ERR_BUSY
	if _store == null:
		_store = Store.new(get("storage_folder"))
	var options = {}
	for name in ["factor", "application_id", "sign_requests", "show_stages"]:
		options[name] = get(name)
	options.base_url = get("base_url").rstrip("/")
	var task = Task.new()
	task.is_exclusive = is_exclusive
	_tasks.append(task)
	task.start(self, Game.new(options, _store, self, task), method, arguments)
	return OK


func _finish(task, method: String, outcome) -> void:
	task.join()
	_tasks.erase(task)
	if typeof(outcome) != TYPE_DICTIONARY or outcome.size() == 0:  # an error ended the call; the engine has printed it
		outcome = Failure.make("not_a_service", "the service sent an answer of another form")
	if outcome.has("player"):
		player = outcome.player
	if outcome.has("reason"):
		emit_signal("failed", outcome)
	elif method == "check":
		emit_signal("checked", outcome.application_id, outcome.rule, outcome.allow)
	elif method == "sign_out":
		emit_signal("signed_out")
	elif method == "renew":
		emit_signal("renewed", player)
	else:
		emit_signal("signed_in", player)


# A node that leaves the scene ends what is under way. It waits for the threads, which the engine requires before they are
# freed: for some milliseconds, or up to three seconds if the service does not answer that the link is closed. So that a sign-in outlives a change of scenes, make it an
# autoload.
func _notification(what: int) -> void:
	if what == NOTIFICATION_EXIT_TREE or what == NOTIFICATION_PREDELETE:
		for task in _tasks:
			task.is_cancelled = true
		for task in _tasks:
			task.join()
