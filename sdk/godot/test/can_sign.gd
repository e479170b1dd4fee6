# Ends with 0 if this version of Godot can sign requests.
extends SceneTree

const Keys = preload("../addons/sso/keys.gd")


func _initialize():
	quit(0 if Keys.can_sign() else 1)
