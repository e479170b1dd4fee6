# Prints what no scenario of the contract can play, with a proxy at SSO_BASE_URL that has no service for results.
extends SceneTree

const SignIn = preload("../addons/sso/sign_in.gd")
const Session = preload("../addons/sso/session.gd")
const Task = preload("../addons/sso/task.gd")


func _initialize():
	var base_url = OS.get_environment("SSO_BASE_URL")
	var session = Session.new()
	session.max_outage_ms = 0
	printerr("REGISTER ", session.register(base_url, {}, [], false, Task.new()))
	printerr("RESULT ", session.result(Task.new()).reason)
	var node = SignIn.new()
	node.base_url = base_url
	get_root().add_child(node)
	node.player = {"user_id": "1"}
	node.sign_in()
	printerr("BUSY ", node.sign_out() == ERR_BUSY, " ", node.player.get("user_id"))
	quit()
