# A session of the sign-in: a link for the browser, two words, and one open request for the result.

const Platform = preload("platform.gd")
const Failure = preload("failure.gd")
const Http = preload("http.gd")
const Keys = preload("keys.gd")
const Task = preload("task.gd")

const PATH = "/proxy/api/gameSession/"
const POLL_S = 45  # longer than the 30 seconds for which the service holds a poll
const CLOSE_S = 3

var max_outage_ms := 60000  # a session outlives a restart of the service
var words := ""  # the game shows them next to the link; the page shows the same
var _base_url := ""
var _gsid := ""
var _proof := ""  # that a request comes from this game, as the query of an address
var _key = null


# Registers the session. Returns a failure, or null.
func register(base_url: String, fields: Dictionary, headers: Array, sign_requests: bool, task):
	_base_url = base_url
	if sign_requests:
		_key = Keys.new()
		if not _key.make():
			return Failure.make("invalid", Keys.NOT_POSSIBLE)
		fields.public_key = _key.public_key()
	var answer = Http.post(base_url + PATH + "getGsid", Platform.encode(fields), headers, task)
	if answer.has("reason") or answer.body.status != "OK":
		return Failure.of(answer)
	if not answer.body.has("gsid"):
		return Failure.make("not_a_service", "%s sent no session" % base_url)
	_gsid = str(answer.body.gsid)
	words = str(answer.body.get("match", ""))
	var location = str(answer.headers.get("location", ""))
	var query = location.find("?")
	_proof = location.substr(query, location.length()) if query >= 0 else ""
	return null


func link() -> String:
	return "%s/?gsid=%s" % [_base_url, _gsid]


func socket_url() -> String:
	return "ws%s/ws/gameSession/refresh/%s%s" % [_base_url.substr(4, _base_url.length()), _gsid, _proof]


# Polls until the player has signed in. Returns the answer, or a failure. Lost connections, 429 and answers of a proxy
# before the service (502 to 504) are one outage.
func result(task) -> Dictionary:
	var outage_since = -1
	while true:
		var answer = _send("getGsidResult", {}, task, POLL_S)
		var delay_s = 0.0
		if _is_away(answer):
			if outage_since < 0:
				outage_since = Platform.now_ms()
			if Platform.now_ms() - outage_since > max_outage_ms:
				return Failure.of(answer)
			delay_s = 1.0 if answer.has("lost") else float(Http.retry_after_s(answer))
		elif answer.has("reason") or answer.body.status == "OK":
			return answer
		else:
			outage_since = -1
			if answer.body.status == "RETRY":
				delay_s = clamp(float(answer.body.get("delay", 0)), 0.0, 60.0)
			elif answer.body.status != "CANCELLED":
				return Failure.of(answer)
		if not task.wait(delay_s):
			return Failure.make("cancelled", "the player gave up")
	return {}


# Tells the service how the sign-in ended. "Error" makes the link unusable. Nothing depends on the answer.
func close(status: String) -> void:
	_send("closeGsid", {"status": status}, Task.new(), CLOSE_S)


static func _is_away(answer: Dictionary) -> bool:
	if answer.has("reason"):
		return answer.has("lost")
	return Http.is_outage(answer) and answer.body.status != "OK"


func _send(name: String, fields: Dictionary, task, timeout_s: int) -> Dictionary:
	fields.gsid = _gsid
	var text = Platform.encode(fields)
	var url = _base_url + PATH + name
	if _key != null:
		return Http.post(url, text, ["Request-Sign: " + _key.sign(text)], task, timeout_s)
	return Http.post(url + _proof, text, [], task, timeout_s)
