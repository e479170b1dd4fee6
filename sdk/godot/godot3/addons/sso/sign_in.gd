# Signs a player in: add this node to a scene, connect its signals, and call sign_in() or resume().
extends "sign_in_node.gd"
class_name SignIn

# The address of the service.
export var base_url: String = "http://127.0.0.1:8000"
# A name of this device, of the game's choice. It belongs to each user JWT.
export var factor: String = ""
# The game's id at the service, or 0.
export var application_id: int = 0
# Opens a WebSocket that shows what the player does in the browser.
export var show_stages: bool = true
# Signs the requests with a new key, for games whose address is shared. It needs Godot 3.3 or later.
export var sign_requests: bool = false
# Where the token and the key of the guest are kept, encrypted.
export var storage_folder: String = "user://sso"
