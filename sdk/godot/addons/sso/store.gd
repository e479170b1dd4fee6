# Keeps texts in encrypted files, one for each, in a folder that only the player's account may open. The key is made
# of the id of the device and of a random salt in that folder, so that a copy of the files alone, on another device,
# is of no use.

const Platform = preload("platform.gd")

var _folder := ""
var _cached_key = null


func _init(folder):
	_folder = folder


# Returns the text, or "" if there is none or it cannot be read here.
func read(name: String) -> String:
	var file = ConfigFile.new()
	if not Platform.file_exists(_path(name)) or file.load_encrypted(_path(name), _key()) != OK:
		return ""
	return file.get_value("sso", "value", "")


# Replaces the text at once, so that a crash leaves the old one or the new one. Returns false if it could not be
# written.
func write(name: String, value: String) -> bool:
	var file = ConfigFile.new()
	var key = _key()
	file.set_value("sso", "value", value)
	if file.save_encrypted(_path(name) + ".new", key) != OK:
		return false
	return Platform.rename_file(_path(name) + ".new", _path(name))


func remove(name: String) -> void:
	if Platform.file_exists(_path(name)):
		Platform.remove_file(_path(name))


func _path(name: String) -> String:
	return "%s/%s.bin" % [_folder, name]


func _key():
	if _cached_key == null:
		_cached_key = (OS.get_unique_id() + _salt()).sha256_buffer()
	return _cached_key


func _salt() -> String:
	var path = _folder + "/salt.cfg"
	var file = ConfigFile.new()
	if Platform.file_exists(path) and file.load(path) == OK:
		return file.get_value("sso", "salt", "")
	Platform.make_private_folder(_folder)
	var salt = Marshalls.raw_to_base64(Crypto.new().generate_random_bytes(32))
	file.set_value("sso", "salt", salt)
	if file.save(path) != OK:
		push_error("%s cannot be written: the player will have to sign in again at the next start" % path)
	return salt
