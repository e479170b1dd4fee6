# Keeps texts in encrypted files, one for each, in a folder that only the player's account may open. The key is made
# of the id of the device and of a random salt in that folder, so that a copy of the files alone, on another device,
# is of no use.

const Platform = preload("platform.gd")

var _folder := ""
var _cached_key = null


func _init(folder):
	_folder = folder


# Returns the text, null if there is none, or "" if it cannot be read here. It writes nothing.
func read(name: String):
	if not Platform.file_exists(_path(name)):
		return null
	var file = ConfigFile.new()
	var key = _key()
	if key == null or file.load_encrypted(_path(name), key) != OK:
		return ""
	return str(file.get_value("sso", "value", ""))


# Replaces the text at once, so that a crash leaves the old one or the new one. Returns false if it could not be
# written.
func write(name: String, value: String) -> bool:
	if not Platform.file_exists(_salt_path()) and not _make_salt():
		return false
	var file = ConfigFile.new()
	var key = _key()
	file.set_value("sso", "value", value)
	if key == null or file.save_encrypted(_path(name) + ".new", key) != OK:
		return false
	return Platform.rename_file(_path(name) + ".new", _path(name))


func remove(name: String) -> void:
	if Platform.file_exists(_path(name)):
		Platform.remove_file(_path(name))


func _path(name: String) -> String:
	return "%s/%s.bin" % [_folder, name]


func _salt_path() -> String:
	return _folder + "/salt.cfg"


# Returns null without a salt that can be read.
func _key():
	if _cached_key == null:
		var salt = _salt()
		if salt != "":
			_cached_key = (OS.get_unique_id() + salt).sha256_buffer()
	return _cached_key


func _salt() -> String:
	var file = ConfigFile.new()
	if not Platform.file_exists(_salt_path()) or file.load(_salt_path()) != OK:
		return ""
	return str(file.get_value("sso", "salt", ""))


# A salt that cannot be read is never replaced: what was encrypted with it, such as the key of a guest, would be lost.
func _make_salt() -> bool:
	Platform.make_private_folder(_folder)
	var file = ConfigFile.new()
	file.set_value("sso", "salt", Marshalls.raw_to_base64(Crypto.new().generate_random_bytes(32)))
	_cached_key = null
	return file.save(_salt_path() + ".new") == OK and Platform.rename_file(_salt_path() + ".new", _salt_path())
