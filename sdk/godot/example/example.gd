# A scene that signs a player in. Its buttons and the signals of the node SignIn are connected in the scene.
extends Control

const TEXTS = {
	"cancelled": "Not signed in.",
	"denied": "The sign-in was refused in the browser.",
	"expired": "Nobody signed in in time.",
	"closed": "The sign-in was ended elsewhere.",
	"refused": "The sign-in was refused.",
	"banned": "This account is banned: %s",
	"no_guests": "This game has no guests.",
	"sign_in_needed": "Sign in to play.",
	"unavailable": "The service cannot be reached. Try again later.",
}

var _url := ""


# A player who has signed in before is signed in without a browser.
func _ready() -> void:
	$Box/Status.text = "Please wait."
	_show("", "")
	$Box/Start.visible = false
	$SignIn.resume()


func _show(url: String, words: String) -> void:
	_url = url
	$Box/Code.show_text(url)
	$Box/Link.text = url
	$Box/Words.text = words
	for part in [$Box/Hint, $Box/Words, $Box/Code, $Box/Link, $Box/Open, $Box/Cancel]:
		part.visible = url != ""
	$Box/Start.visible = url == "" and $SignIn.player.size() == 0
	$Box/Leave.visible = $SignIn.player.size() > 0


func _on_start_pressed() -> void:
	$Box/Start.visible = false
	$SignIn.sign_in()


func _on_open_pressed() -> void:
	OS.shell_open(_url)


func _on_cancel_pressed() -> void:
	$SignIn.cancel()


func _on_leave_pressed() -> void:
	$SignIn.sign_out()


func _on_show_link(url: String, words: String) -> void:
	_show(url, words)
	$Box/Status.text = "Waiting for the browser."


func _on_stage_changed(stage: String) -> void:
	$Box/Status.text = "In the browser: " + stage


func _on_signed_in(player: Dictionary) -> void:
	_show("", "")
	$Box/Status.text = "Hello, " + player.nick


func _on_signed_out() -> void:
	_show("", "")
	$Box/Status.text = TEXTS.sign_in_needed


func _on_failed(failure: Dictionary) -> void:
	_show("", "")
	var text = TEXTS.get(failure.reason, failure.message)
	$Box/Status.text = text % failure.ban.reason if failure.reason == "banned" else text
