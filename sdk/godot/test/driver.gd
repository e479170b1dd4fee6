# The test program of this package. The contract says what it reads and prints. It prints to the standard error, which
# the engine does not buffer; the script next to it takes the events out.
extends SceneTree

const Platform = preload("../addons/sso/platform.gd")
const SignIn = preload("../addons/sso/sign_in.gd")

const SIGNALS = ["show_link", "stage_changed", "signed_in", "renewed", "signed_out", "checked", "failed"]

var _node = null
var _command = {}


func _initialize():
	Engine.set("max_fps" if Engine.get_version_info().major >= 4 else "target_fps", 30)
	_node = SignIn.new()
	_node.base_url = OS.get_environment("SSO_BASE_URL")
	_node.storage_folder = OS.get_environment("SSO_FOLDER") + "/sso"
	get_root().add_child(_node)
	for name in SIGNALS:
		Platform.listen(_node, name, self, "_on_" + name)
	call_deferred("_next")


# Reads a command. The engine opens no pipes, so a shell reads the line.
func _next():
	var output = []
	if Platform.run("sh", [OS.get_environment("SSO_READ_LINE")], output) != OK:
		quit()
		return
	_command = Platform.decode(output[0])
	if _command.has("factor"):
		_node.factor = _command.factor
	_node.show_stages = _command.get("socket", false)
	_node.sign_requests = _command.get("sign", false)
	match _command["do"]:
		"guest":
			_node.sign_in_as_guest()
		"ticket":
			_node.sign_in_with_ticket(_command.provider, _command.ticket)
		"check":
			_node.check(int(_command.application_id), _command.rule)
		"resume":
			_node.resume(int(_command.get("tries", 3)))
		_:
			_node.call(_command["do"])


func _show(event):
	printerr("EVENT " + Platform.encode(event))


func _on_show_link(url, words):
	_show({"event": "show_link", "url": url, "words": words})
	if _command.get("cancel_after") == "show_link":
		Platform.listen(create_timer(0.5), "timeout", _node, "cancel")


func _on_stage_changed(stage):
	_show({"event": "stage", "stage": stage})


func _on_signed_in(player):
	var event = {"event": "signed_in"}
	for name in ["user_id", "nick", "guest", "linked"]:
		event[name] = player[name]
	_end(event)


func _on_renewed(_player):
	_end({"event": "renewed"})


func _on_signed_out():
	_end({"event": "signed_out"})


func _on_checked(_application_id, _rule, allow):
	_end({"event": "checked", "allow": allow})


func _on_failed(failure):
	_end({"event": "failed", "reason": failure.reason, "record": failure.record, "ban": failure.ban})


func _end(event):
	_show(event)
	call_deferred("_next")
