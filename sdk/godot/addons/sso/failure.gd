# Why a call did not succeed, as a dictionary with "reason", "message", "record" and "ban". The message is for
# developers; a game shows the player a text of its own for each reason.

const ENDS = {"session denied": "denied", "session expired": "expired", "session closed": "closed"}


static func make(reason: String, message: String, record: String = "", ban = null) -> Dictionary:
	return {"reason": reason, "message": message, "record": record, "ban": ban}


# Returns the failure that an answer with the status ERROR means. A failure stays as it is.
static func of(answer: Dictionary) -> Dictionary:
	if answer.has("reason"):
		return answer
	var status = answer.status
	var error = str(answer.body.get("error", "HTTP %d" % status))
	var ban = answer.body.get("ban")
	if error == "banned" and typeof(ban) == TYPE_DICTIONARY:
		var until = ban.get("until")
		if until != null:
			ban.until = int(until)
		return make("banned", "the player is banned", "", ban)
	if ENDS.has(error):
		return make(ENDS[error], error)
	if status == 401 or status == 403:
		return make("refused", error, _record(error))
	if status == 429 or status >= 500:
		return make("unavailable", error)
	return make("invalid", error)


# Returns the id of the record, which support can look up, if the error is one.
static func _record(error: String) -> String:
	var pattern = RegEx.new()
	pattern.compile("^[0-9a-f]{16}$")
	return error if pattern.search(error) != null else ""
