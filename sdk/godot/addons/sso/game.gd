# Signs a player in and keeps the player signed in. Each method runs in the thread of a task and returns {"player"},
# {"allow"} or a failure.

const Platform = preload("platform.gd")
const Failure = preload("failure.gd")
const Http = preload("http.gd")
const Keys = preload("keys.gd")
const Session = preload("session.gd")
const Stages = preload("stages.gd")

const TOKEN = "token"
const GUEST_KEY = "guest_key"
const SIGN_OUT_S = 3  # the player does not wait for a service that is away

var _options := {}  # base_url, factor, application_id, sign_requests, show_stages
var _store = null
var _node = null
var _task = null


func _init(options, store, node, task):
	_options = options
	_store = store
	_node = node
	_task = task


# Signs the player in with a browser.
func sign_in() -> Dictionary:
	return _with_browser(_fields({}), [])


# Signs a guest in with a browser. The player keeps what the guest has.
func link(guest: Dictionary) -> Dictionary:
	if not guest.get("guest", false):
		return Failure.make("sign_in_needed", "sign the guest in first")
	return _with_browser(_fields({"link": "1"}), _proof_of(guest))


# Signs the player in with the stored token, without a browser.
func resume(tries: int) -> Dictionary:
	var token = _token()
	if token == "":
		return Failure.make("sign_in_needed", "nothing is stored, or it cannot be read")
	while true:
		var answer = _ask("/proxy/api/login", {"token": token})
		tries -= 1
		if answer.get("status") == 401:  # 403 does not mean that the token has ended
			_store.remove(TOKEN)
			return Failure.make("sign_in_needed", Failure.of(answer).message)
		var outcome = _accept(answer)
		if outcome.get("reason") != "unavailable" or tries <= 0:
			return outcome  # without the service, the token stays for the next start
		if not _task.wait(1):
			return Failure.make("cancelled", "the player gave up")
	return {}


# Gets new tokens before the present ones end.
func renew() -> Dictionary:
	return resume(3)


# Signs a guest in with the key of this device, which is made at the first call.
func sign_in_as_guest() -> Dictionary:
	var key = Keys.new()
	var failure = _prepare_guest(key)
	if failure != null:
		return failure
	var nonce = Crypto.new().generate_random_bytes(24).hex_encode()
	var proof = {"public_key": key.public_key(), "ts": Platform.unix_time(), "nonce": nonce}
	var text = Platform.encode(_fields(proof))
	var answer = Http.post(_options.base_url + "/proxy/api/guest", text, ["Request-Sign: " + key.sign(text)], _task)
	if answer.get("status") == 404:
		return Failure.make("no_guests", "the service has no guests")
	if answer.has("reason") or answer.body.status != "OK":
		return Failure.of(answer)
	return {"player": _player(answer.body)}  # a guest comes back by its key, so no token is stored


# Signs the player in with the ticket of a store.
func sign_in_with_ticket(provider: String, ticket) -> Dictionary:
	return _accept(_ask("/proxy/api/ticket", {"provider": provider, "ticket": ticket}))


# Asks whether the player may do something.
func check(player: Dictionary, application_id: int, rule: String) -> Dictionary:
	if player.size() == 0:
		return Failure.make("sign_in_needed", "no player is signed in")
	var text = Platform.encode({"application_id": application_id, "data": {"questions": [{"rule": rule}]}})
	var answer = Http.post(_options.base_url + "/api/permissions/check", text, _proof_of(player), _task)
	if answer.has("reason") or answer.body.status != "OK":
		return Failure.of(answer)
	var answers = answer.body.get("data")
	if typeof(answers) != TYPE_ARRAY or answers.size() != 1 or typeof(answers[0]) != TYPE_DICTIONARY:
		return Failure.make("not_a_service", "the service did not answer the question")
	return {"application_id": application_id, "rule": rule, "allow": answers[0].get("allow", false) == true}


# Forgets the player and ends the sign-in, if the service can be reached. The key of a guest stays: it is the only way
# back to the guest's progress.
func sign_out() -> Dictionary:
	var token = _token()
	_store.remove(TOKEN)
	if token != "":
		Http.post(_options.base_url + "/proxy/api/logout", Platform.encode({"token": token}), [], _task, SIGN_OUT_S)
	return {"player": {}}


# Reads the key of the guest, or makes one. Returns a failure, or null. A key that cannot be read is not replaced: it is
# the only way back to the guest's progress.
func _prepare_guest(key):
	var stored = _store.read(GUEST_KEY)
	if stored != null:
		return null if key.read(stored) else Failure.make("invalid", "the key of the guest cannot be read")
	if not key.make():
		return Failure.make("invalid", Keys.NOT_POSSIBLE)
	if not _store.write(GUEST_KEY, key.text()):
		return Failure.make("invalid", "the key of the guest cannot be stored")
	return null


# Returns the stored token, or "" if there is none that can be read.
func _token() -> String:
	var stored = _store.read(TOKEN)
	return "" if stored == null else stored


func _with_browser(fields: Dictionary, headers: Array) -> Dictionary:
	var session = Session.new()
	var failure = session.register(_options.base_url, fields, headers, _options.sign_requests, _task)
	if failure != null:
		return failure
	if _options.show_stages:
		_task.stages = Stages.new(session.socket_url(), _node)
	_node.call_deferred("emit_signal", "show_link", session.link(), session.words)
	var answer = session.result(_task)
	var outcome = answer if answer.has("reason") else _keep(answer.body)
	if outcome.get("reason") == "cancelled":
		session.close("Error")
	elif outcome.has("player"):
		session.close("Success")
	if _task.stages != null:
		_task.stages.close()
	return outcome


func _ask(path: String, fields: Dictionary) -> Dictionary:
	return Http.post(_options.base_url + path, Platform.encode(_fields(fields)), [], _task)


func _accept(answer: Dictionary) -> Dictionary:
	if answer.has("reason") or answer.body.status != "OK":
		return Failure.of(answer)
	return _keep(answer.body)


# The result is returned only once, so its token is stored before anything else.
func _keep(body: Dictionary) -> Dictionary:
	if not _store.write(TOKEN, str(body.get("token", ""))):
		push_error("the token cannot be stored: the player will have to sign in again at the next start")
	return {"player": _player(body)}


func _fields(more: Dictionary) -> Dictionary:
	if _options.factor != "":
		more.factor = _options.factor
	if _options.application_id != 0:
		more.app_id = _options.application_id
	return more


func _proof_of(player: Dictionary) -> Array:
	return ["Authorization: Bearer " + player.jwt, "Factor: " + _options.factor]


static func _player(body: Dictionary) -> Dictionary:
	return {
		"user_id": str(body.get("user_id", "")),
		"nick": str(body.get("nick", "")),
		"guest": body.get("guest", false) == true,
		"jwt": str(body.get("jwt", "")),
		"linked": str(body.get("linked", "")),
	}
