package recording

import "strings"

func setOf(text string) map[string]bool {
	out := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		out[word] = true
	}
	return out
}

var (
	// identifiers are the last words of keys whose values are identifiers.
	identifiers = setOf("id ids uuid guid ref mac serial")
	// times are words of keys whose numbers are times.
	times = setOf("at date time timestamp start starts end ends from until created updated expires expiry")
	// private are words of keys whose values are never recorded, not even if they are in words.
	private = setOf("name names label title user username nickname email mail phone password passcode secret token " +
		"key pin pwd address street city note notes comment description")
	// words are values that stay. No name of a person may be among them.
	words = setOf(`active inactive enabled disabled pending deleting deleted failed error ok success none unknown
		online offline connected disconnected locked unlocked locking unlocking jammed open opened closed
		set setting unset removing set_on_device ongoing time_bound permanent temporary scheduled always
		lock smart_lock hub bridge gateway keypad thermostat noise_sensor sensor device
		sync read_back adopt rewrite never alphanumeric
		true false yes no all any asc desc
		bearer Bearer password refresh_token authorization_code client_credentials
		application/json text/plain UTC
		no_zeros cannot_start_with_12 no_triple_consecutive_ints cannot_specify_pin_code
		pin_code_matches_existing_set start_date_in_future no_ascending_or_descending_sequence
		at_least_three_unique_digits cannot_contain_089 cannot_contain_0789 unique_first_four_digits
		no_all_same_digits name_length name_must_be_unique
		august_lock yale_lock schlage_lock kwikset_lock nuki_lock tedee_lock ttlock_lock igloohome_lock salto_lock
		smartthings_lock akuvox_lock lockly_lock ultraloq_lock`)
	// nouns are parts of paths that stay.
	nouns = setOf(`api oauth oauth2 auth token tokens login session sessions account accounts my user users me
		lock locks smartlock smartlocks device devices code codes access_codes accesscode accesscodes pin pins
		keyboardPwd keypad gateway gateways bridge bridges hub hubs list get query search sync status state states
		log logs event events activity webhook webhooks callback callbacks unmanaged managed
		workspaces connected_accounts action_attempts systems entrances groups thermostats noise_sensors
		listKeyboardPwd listByLock detail config capabilities all action operation decentralWebhook key
		subscriptions lockRecord paged pull commands health jobs queryOpenState`)
	// outcomes are keys, without their underscores, whose values are not about persons and devices.
	outcomes = setOf("errcode errorcode error status statuscode")
)
