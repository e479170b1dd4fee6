# Sends JSON and waits for the answer. It runs in the thread of a task, which sleeps between two looks at the socket.

const Platform = preload("platform.gd")
const Failure = preload("failure.gd")

const OUTAGES = [429, 502, 503, 504]
const REQUEST_S = 15
const MAX_BODY = 1048576


# Returns {"status", "body", "headers"}, or a failure. A failure has "lost" if the connection was lost or there was
# none: the request may have had its effect. The text is made once, so that a signature covers exactly what is sent.
static func post(url: String, text: String, headers: Array, task, timeout_s: int = REQUEST_S) -> Dictionary:
	var http = HTTPClient.new()
	var answer = _exchange(http, _split(url), text, headers, task, Platform.now_ms() + timeout_s * 1000)
	http.close()
	return answer


static func is_outage(answer: Dictionary) -> bool:
	return answer.status in OUTAGES


# Returns for how many seconds the service asks the game to wait: 1 to 60, so that nobody asks without a pause.
static func retry_after_s(answer: Dictionary) -> int:
	return int(clamp(int(answer.headers.get("retry-after", "1")), 1, 60))


static func _exchange(http, target: Dictionary, text: String, headers: Array, task, deadline: int) -> Dictionary:
	if http.connect_to_host(target.origin, target.port) != OK:
		return _lost("%s cannot be reached" % target.origin)
	_wait(http, [HTTPClient.STATUS_RESOLVING, HTTPClient.STATUS_CONNECTING], task, deadline)
	if http.get_status() == HTTPClient.STATUS_CONNECTED and not task.is_cancelled:
		http.request(HTTPClient.METHOD_POST, target.path, ["Content-Type: application/json"] + headers, text)
		_wait(http, [HTTPClient.STATUS_REQUESTING], task, deadline)
	if task.is_cancelled:
		return Failure.make("cancelled", "the player gave up")
	var is_answered = http.get_status() in [HTTPClient.STATUS_BODY, HTTPClient.STATUS_CONNECTED]
	if not is_answered or not http.has_response():
		return _lost("%s did not answer" % target.origin)
	return _read(http, target.origin, task, deadline)


# Polls while the status is one of these. Short pauses at first, so that a quick answer is not waited for.
static func _wait(http, statuses: Array, task, deadline: int) -> void:
	var pause_ms = 2
	http.poll()
	while http.get_status() in statuses and Platform.now_ms() < deadline and task.pause(pause_ms):
		pause_ms = int(min(pause_ms * 1.5 + 1, task.LONGEST_PAUSE_MS))
		http.poll()


static func _read(http, origin: String, task, deadline: int) -> Dictionary:
	var status = http.get_response_code()
	var length = http.get_response_body_length()
	var headers = {}
	var found = http.get_response_headers_as_dictionary()
	for name in found:
		headers[name.to_lower()] = found[name]
	var content = Platform.to_bytes("")
	while http.get_status() == HTTPClient.STATUS_BODY and content.size() <= MAX_BODY:
		http.poll()
		var chunk = http.read_response_body_chunk()
		if chunk.size() > 0:
			content.append_array(chunk)
		elif Platform.now_ms() >= deadline or not task.pause(2):
			break
	if task.is_cancelled:
		return Failure.make("cancelled", "the player gave up")
	if length >= 0 and content.size() < length:
		return _lost("%s sent half an answer" % origin)
	var body = Platform.decode(content.get_string_from_utf8())
	if typeof(body) != TYPE_DICTIONARY or typeof(body.get("status")) != TYPE_STRING:
		if not (status in OUTAGES):
			return Failure.make("not_a_service", "%s is not a sign-on service (HTTP %d)" % [origin, status])
		body = {"status": "ERROR", "error": "HTTP %d" % status}  # from a proxy before the service
	return {"status": status, "body": body, "headers": headers}


static func _lost(message: String) -> Dictionary:
	var failure = Failure.make("unavailable", message)
	failure.lost = true
	return failure


# Returns the origin without its port, the port and the path. The engine uses TLS if the origin begins with https.
static func _split(url: String) -> Dictionary:
	var scheme = "https" if url.begins_with("https://") else "http"
	var rest = url.substr(scheme.length() + 3, url.length())
	var slash = rest.find("/")
	var place = rest if slash < 0 else rest.substr(0, slash)
	var path = "/" if slash < 0 else rest.substr(slash, rest.length())
	var parts = place.split(":")
	var port = int(parts[1]) if parts.size() == 2 else (443 if scheme == "https" else 80)
	return {"origin": "%s://%s" % [scheme, parts[0]], "port": port, "path": path}
