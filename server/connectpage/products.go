package connectpage

// productTexts are the sentences about what the person connects. Languages need whole sentences.
type productTexts struct {
	// connect is the heading of the first page.
	connect string
	// lead says who asks; it has a %s for the name.
	lead string
	// question asks for the vendor.
	question string
	// purpose says what the inviter does with the account; it has a %s for the name.
	purpose string
	// looking is the heading while the server reads the account, and unread says that it could not.
	looking, unread string
	// done says what the inviter can do now; it has a %s for the name.
	done string
	// found is the number of them, and none says that there are none.
	found, none string
}

// lockKind is the kind of devices of most vendors.
const lockKind = "lock"

// mixedKinds stands for several kinds.
const mixedKinds = "mixed"

// textsOf holds the sentences by the kind of devices in the API, as in accepted_capabilities.
var textsOf = map[string]productTexts{
	lockKind: {
		connect:  "Connect your locks",
		lead:     "%s would like to manage the codes of your locks.",
		question: "Which brand is your lock?",
		purpose:  "%s will manage the codes of the locks in this account.",
		looking:  "Looking for your locks",
		unread:   "You are logged in, but we could not read your locks.",
		done:     "Your account is connected. %s can now manage the codes of your locks.",
		found:    "We found %d locks",
		none:     "There are no locks in this account yet. New ones are added automatically.",
	},
	"access_control": {
		connect:  "Connect your access systems",
		lead:     "%s would like to manage the users of your access systems.",
		question: "Which brand is your access system?",
		purpose:  "%s will manage the users of the access systems in this account.",
		looking:  "Looking for your access systems",
		unread:   "You are logged in, but we could not read your access systems.",
		done:     "Your account is connected. %s can now manage the users of your access systems.",
		found:    "We found %d access systems",
		none:     "There are no access systems in this account yet. New ones are added automatically.",
	},
	"thermostat": {
		connect:  "Connect your thermostats",
		lead:     "%s would like to manage your thermostats.",
		question: "Which brand is your thermostat?",
		purpose:  "%s will manage the settings of the thermostats in this account.",
		looking:  "Looking for your thermostats",
		unread:   "You are logged in, but we could not read your thermostats.",
		done:     "Your account is connected. %s can now manage your thermostats.",
		found:    "We found %d thermostats",
		none:     "There are no thermostats in this account yet. New ones are added automatically.",
	},
	"noise_sensor": {
		connect:  "Connect your noise sensors",
		lead:     "%s would like to manage your noise sensors.",
		question: "Which brand is your noise sensor?",
		purpose:  "%s will manage the settings of the noise sensors in this account.",
		looking:  "Looking for your noise sensors",
		unread:   "You are logged in, but we could not read your noise sensors.",
		done:     "Your account is connected. %s can now manage your noise sensors.",
		found:    "We found %d noise sensors",
		none:     "There are no noise sensors in this account yet. New ones are added automatically.",
	},
	mixedKinds: {
		connect:  "Connect your devices",
		lead:     "%s would like to manage your devices.",
		question: "Which brand do you use?",
		purpose:  "%s will manage the devices in this account.",
		looking:  "Looking for your devices",
		unread:   "You are logged in, but we could not read your devices.",
		done:     "Your account is connected. %s can now manage your devices.",
		found:    "We found %d devices",
		none:     "There are no devices in this account yet. New ones are added automatically.",
	},
}

// productsOf returns the sentences about what the person connects with one of the vendors.
func productsOf(vendors ...Vendor) productTexts {
	found := lockKind
	for i, v := range vendors {
		kind := v.kind()
		if i > 0 && kind != found {
			kind = mixedKinds
		}
		found = kind
	}
	return textsOf[found]
}

// kind returns the kind of devices that the person connects with the vendor.
func (v Vendor) kind() string {
	switch {
	case len(v.Kinds) > 1:
		return mixedKinds
	case len(v.Kinds) == 0 || textsOf[v.Kinds[0]] == productTexts{}:
		return lockKind
	}
	return v.Kinds[0]
}
