# A key of the game, made and used by the engine: RSA with 2048 bits, PKCS#1 v1.5 and SHA-256.

const Platform = preload("platform.gd")

const NOT_POSSIBLE = "this version of Godot cannot sign: guests and signed requests need Godot 3.3 or later"

var _key = null


static func can_sign() -> bool:
	return ClassDB.class_has_method("Crypto", "sign")


# Makes a new key. Returns false if the engine cannot.
func make() -> bool:
	if not can_sign():
		return false
	_key = Crypto.new().generate_rsa(2048)
	return _key != null


# Reads a key that `text` has given. Returns false if it is none.
func read(stored: String) -> bool:
	_key = CryptoKey.new()
	return stored != "" and can_sign() and _key.load_from_string(stored) == OK


# Returns the private key, to store.
func text() -> String:
	return _key.save_to_string()


# Returns base64 of the DER of the public key.
func public_key() -> String:
	var lines = _key.save_to_string(true).strip_edges().split("\n")
	var content = ""
	for line in lines:
		if not line.begins_with("-----"):
			content += line
	return content


# Returns base64 of the signature.
func sign(content: String) -> String:
	var context = HashingContext.new()
	context.start(HashingContext.HASH_SHA256)
	context.update(Platform.to_bytes(content))
	var crypto = Crypto.new()
	return Marshalls.raw_to_base64(crypto.sign(HashingContext.HASH_SHA256, context.finish(), _key))
