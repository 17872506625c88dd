package alerts

import "strings"

// cases are the states of servers over time. Each alert has some cases in which it fires, and similar ones in which it
// does not. The series are those of a real server, except for the address that Prometheus adds.
var cases = []struct {
	about  string // an alert
	fires  bool   // whether this alert fires, and no other
	what   string
	series string
}{
	{"DeviceAccessGone", true, "one of two servers is gone", `
		up{job="deviceaccess", instance="a"} 1x120
		up{job="deviceaccess", instance="b"} 1x10 0x110`},
	{"DeviceAccessGone", true, "Prometheus has no servers configured", `
		up{job="node", instance="a"} 1x120`},
	{"DeviceAccessGone", false, "a server is started again", `
		up{job="deviceaccess", instance="a"} 1x10 0 1x110
		deviceaccess_health{instance="a", part="server"} 0x9 2 stale 0x110`},

	{"DeviceAccessDown", true, "a server has lost its database", `
		deviceaccess_health{instance="a", part="database"} 0x10 2x2 0x110
		deviceaccess_health{instance="a", part="work"} 0x120
		deviceaccess_health{instance="b", part="database"} 0x120`},
	{"DeviceAccessDown", false, "a server loses it for a moment", `
		deviceaccess_health{instance="a", part="database"} 0x10 2 0x110`},
	{"DeviceAccessDown", false, "deliveries are late", `
		deviceaccess_health{instance="a", part="deliveries"} 1x120`},

	{"DeviceAccessDatabaseDown", true, "no server reaches the database", `
		deviceaccess_database_up{instance="a"} 1x10 0x5 1x100
		deviceaccess_database_up{instance="b"} 1x9 0x5 1x100`},
	{"DeviceAccessDatabaseDown", false, "one server does not reach it", `
		deviceaccess_database_up{instance="a"} 1x10 0x110
		deviceaccess_database_up{instance="b"} 1x120`},

	{"DeviceAccessDevicesLate", true, "devices wait", `
		deviceaccess_health{instance="a", part="devices"} 0x10 1x6 0x100`},
	{"DeviceAccessDevicesLate", true, "devices wait, while one of two servers has lost its database", `
		deviceaccess_database_up{instance="a"} 0x120
		deviceaccess_database_up{instance="b"} 1x120
		deviceaccess_health{instance="b", part="devices"} 0x10 1x6 0x100`},
	{"DeviceAccessDatabaseDown", true, "it is unknown whether devices wait", `
		deviceaccess_database_up{instance="a"} 1x10 0x30 1x80
		deviceaccess_health{instance="a", part="devices"} 0x10 1x30 0x80`},
	{"DeviceAccessDevicesLate", false, "devices wait for four minutes", `
		deviceaccess_health{instance="a", part="devices"} 0x10 1x4 0x100`},

	{"DeviceAccessDeliveriesLate", true, "deliveries to a webhook that works are late", `
		deviceaccess_webhook_oldest_due_seconds{instance="a", endpoint="healthy"} 0x10 61+60x6 0x100`},
	{"DeviceAccessDeliveriesLate", true, "no server processes events", `
		deviceaccess_webhook_oldest_due_seconds{instance="a", endpoint="healthy"} 0x120
		deviceaccess_outbox_oldest_seconds{instance="a"} 0x10 61+60x6 0x100`},
	{"DeviceAccessDeliveriesLate", false, "both are a minute late, and one that fails is an hour late", `
		deviceaccess_webhook_oldest_due_seconds{instance="a", endpoint="healthy"} 60x120
		deviceaccess_webhook_oldest_due_seconds{instance="a", endpoint="failing"} 0+30x120
		deviceaccess_outbox_oldest_seconds{instance="a"} 60x120`},
	{"DeviceAccessDeliveriesLate", false, "deliveries are late for four minutes", `
		deviceaccess_webhook_oldest_due_seconds{instance="a", endpoint="healthy"} 0x10 61x4 0x100`},

	{"DeviceAccessReceiverSlow", true, "an endpoint falls behind", `
		deviceaccess_webhook_oldest_due_seconds{instance="a", endpoint="healthy"} 0x120
		deviceaccess_webhook_oldest_due_seconds{instance="a", endpoint="slow"} 0+60x120`},
	{"DeviceAccessReceiverSlow", false, "an endpoint falls behind for ten minutes", `
		deviceaccess_webhook_oldest_due_seconds{instance="a", endpoint="slow"} 0x10 901x10 0x100`},

	{"DeviceAccessReceiverFails", true, "a busy endpoint fails, and nothing is given up", `
		deviceaccess_webhook_oldest_due_seconds{instance="a", endpoint="healthy"} 0x120
		deviceaccess_webhook_oldest_due_seconds{instance="a", endpoint="failing"} 0+60x120
		deviceaccess_webhook_attempts_total{instance="a", outcome="given_up"} 0x120`},
	{"DeviceAccessReceiverFails", false, "an endpoint is late for more than an hour for ten minutes", `
		deviceaccess_webhook_oldest_due_seconds{instance="a", endpoint="failing"} 0x10 3601x10 0x100`},

	{"DeviceAccessErrors", true, "one request in fifty fails, all at one server", `
		deviceaccess_http_requests_total{instance="a", operation="/devices/list", status="200"} 0+98x120
		deviceaccess_http_requests_total{instance="a", operation="/access_codes/create", status="503"} 0x20 0+4x100
		deviceaccess_http_requests_total{instance="b", operation="/devices/list", status="200"} 0+98x120`},
	{"DeviceAccessErrors", false, "one in two hundred fails", `
		deviceaccess_http_requests_total{instance="a", operation="/devices/list", status="200"} 0+199x120
		deviceaccess_http_requests_total{instance="a", operation="/access_codes/create", status="503"} 0+1x120`},
	{"DeviceAccessErrors", false, "some fail, and then none", `
		deviceaccess_http_requests_total{instance="a", operation="/devices/list", status="200"} 0+10x120
		deviceaccess_http_requests_total{instance="a", operation="/access_codes/create", status="503"} 0x20 5x100`},
	{"DeviceAccessErrors", false, "clients hang up", `
		deviceaccess_http_requests_total{instance="a", operation="/access_codes/create", status="499"} 0+50x120`},
	{"DeviceAccessErrors", false, "clients make mistakes", `
		deviceaccess_http_requests_total{instance="a", operation="/devices/list", status="401"} 0+50x120`},
	{"DeviceAccessErrors", false, "a server tells the load balancer to remove it", `
		deviceaccess_http_requests_total{instance="a", operation="/devices/list", status="200"} 0+300x120
		deviceaccess_http_requests_total{instance="a", operation="/health", status="200"} 0+30x120
		deviceaccess_http_requests_total{instance="b", operation="/health", status="503"} 0+30x120`},

	{"DeviceAccessThrottled", true, "a client guesses credentials", `
		deviceaccess_http_requests_total{instance="a", operation="/devices/list", status="429"} 0x10 0+66x100`},
	{"DeviceAccessThrottled", false, "a client guesses slowly", `
		deviceaccess_http_requests_total{instance="a", operation="/devices/list", status="429"} 0+59x120`},
	{"DeviceAccessThrottled", false, "a client guesses for four minutes", `
		deviceaccess_http_requests_total{instance="a", operation="/devices/list", status="429"} 0x10 0+600x4 2400x100`},

	{"DeviceAccessSlow", true, "one read in fifty takes more than a second", `
		deviceaccess_http_request_seconds_bucket{instance="a", operation="/devices/list", le="1.0"} 0+98x120
		deviceaccess_http_request_seconds_bucket{instance="a", operation="/devices/list", le="5.0"} 0+100x120
		deviceaccess_http_request_seconds_bucket{instance="a", operation="/devices/list", le="+Inf"} 0+100x120`},
	{"DeviceAccessSlow", false, "one read in two hundred is slow, and most writes are", `
		deviceaccess_http_request_seconds_bucket{instance="a", operation="/devices/list", le="1.0"} 0+199x120
		deviceaccess_http_request_seconds_bucket{instance="a", operation="/devices/list", le="5.0"} 0+200x120
		deviceaccess_http_request_seconds_bucket{instance="a", operation="/devices/list", le="+Inf"} 0+200x120
		deviceaccess_http_request_seconds_bucket{instance="a", operation="/access_codes/create", le="1.0"} 0+10x120
		deviceaccess_http_request_seconds_bucket{instance="a", operation="/access_codes/create", le="5.0"} 0+100x120
		deviceaccess_http_request_seconds_bucket{instance="a", operation="/access_codes/create", le="+Inf"} 0+100x120`},
	{"DeviceAccessSlow", false, "reads have stopped", `
		deviceaccess_http_request_seconds_bucket{instance="a", operation="/devices/list", le="1.0"} 98x120
		deviceaccess_http_request_seconds_bucket{instance="a", operation="/devices/list", le="5.0"} 100x120
		deviceaccess_http_request_seconds_bucket{instance="a", operation="/devices/list", le="+Inf"} 100x120`},

	{"DeviceAccessClockWrong", true, "the clock of the database has jumped", `
		deviceaccess_health{instance="a", part="retention"} 0x10 1x60 0x50`},
	{"DeviceAccessClockWrong", false, "all clocks are right", `
		deviceaccess_health{instance="a", part="retention"} 0x120
		deviceaccess_health{instance="a", part="server"} 0x120`},

	{"DeviceAccessWebhookDisabled", true, "a webhook is disabled", `
		deviceaccess_webhooks_disabled{instance="a"} 0x10 1x3 0x100`},
	{"DeviceAccessWebhookDisabled", false, "none is disabled, and one is failing", `
		deviceaccess_webhooks_disabled{instance="a"} 0x120
		deviceaccess_webhook_attempts_total{instance="a", outcome="retry"} 0+1x120`},

	{"DeviceAccessEventsGivenUp", true, "the first event is given up", `
		deviceaccess_webhook_attempts_total{instance="a", outcome="given_up"} 0x10 1x110`},
	{"DeviceAccessEventsGivenUp", false, "events were given up long ago, and the server is started again", `
		deviceaccess_webhook_attempts_total{instance="a", outcome="given_up"} 3x100 stale 0x20
		deviceaccess_webhook_attempts_total{instance="a", outcome="delivered"} 0+9x120`},

	{"DeviceAccessGatewayLost", true, "a gateway is unreachable", `
		deviceaccess_accounts{instance="a", adapter="sandbox", state="bridge_disconnected"} 0x10 1x11 0x99
		deviceaccess_accounts{instance="a", adapter="sandbox", state="connected"} 2x120`},
	{"DeviceAccessGatewayLost", true, "a vendor refuses an account", `
		deviceaccess_accounts{instance="a", adapter="sandbox", state="account_disconnected"} 0x10 1x110`},
	{"DeviceAccessGatewayLost", false, "a gateway restarts for nine minutes", `
		deviceaccess_accounts{instance="a", adapter="sandbox", state="bridge_disconnected"} 0x10 1x9 0x101
		deviceaccess_accounts{instance="a", adapter="sandbox", state="connected"} 2x120`},

	{"DeviceAccessLocksOffline", true, "one of a hundred locks is offline", `
		deviceaccess_devices{instance="a", state="offline"} 0x10 1x110
		deviceaccess_devices{instance="a", state="online"} 100x10 99x110`},
	{"DeviceAccessLocksOffline", false, "a lock is offline for 29 minutes", `
		deviceaccess_devices{instance="a", state="offline"} 0x10 1x29 0x81
		deviceaccess_devices{instance="a", state="online"} 100x120`},

	{"DeviceAccessManyLocksOffline", true, "two servers see a quarter of the locks offline for a quarter of an hour", `
		deviceaccess_devices{instance="a", state="offline"} 0x10 25x15 0x95
		deviceaccess_devices{instance="a", state="online"} 100x10 75x15 100x95
		deviceaccess_devices{instance="b", state="offline"} 0x10 25x15 0x95
		deviceaccess_devices{instance="b", state="online"} 100x10 75x15 100x95`},
	{"DeviceAccessManyLocksOffline", false, "the only lock is offline for a quarter of an hour", `
		deviceaccess_devices{instance="a", state="offline"} 0x10 1x15 0x95
		deviceaccess_devices{instance="a", state="online"} 1x10 0x15 1x95`},

	{"DeviceAccessCodeNotSet", true, "a lock does not set a code", `
		deviceaccess_codes_overdue{instance="a"} 0x10 1x6 0x104`},
	{"DeviceAccessCodeNotSet", false, "codes wait for a lock that is offline for a quarter of an hour", `
		deviceaccess_codes_overdue{instance="a"} 0x120
		deviceaccess_access_codes{instance="a", status="setting"} 3x120
		deviceaccess_devices{instance="a", state="offline"} 0x10 1x15 0x95`},

	{"DeviceAccessCodeFails", true, "a lock refuses a code, which is not overdue", `
		deviceaccess_codes_failing{instance="a"} 0x10 1x6 0x104
		deviceaccess_codes_overdue{instance="a"} 0x120
		deviceaccess_access_codes{instance="a", status="unset"} 0x10 1x6 0x104`},
	{
		"DeviceAccessCodeFails",
		false,
		"a code that was changed at the keypad is restored, and another waits for its turn",
		`
		deviceaccess_codes_failing{instance="a"} 0x10 1x4 0x106
		deviceaccess_access_codes{instance="a", status="unset"} 1x120`,
	},

	{"DeviceAccessCodeNotRemoved", true, "a lock keeps a code", `
		deviceaccess_codes_removal_overdue{instance="a"} 0x10 1x6 0x104
		deviceaccess_codes_overdue{instance="a"} 0x120
		deviceaccess_access_codes{instance="a", status="removing"} 0x10 1x6 0x104`},
	{"DeviceAccessCodeNotRemoved", false, "a code stays on a lock that is offline for a quarter of an hour", `
		deviceaccess_codes_removal_overdue{instance="a"} 0x120
		deviceaccess_access_codes{instance="a", status="removing"} 1x120
		deviceaccess_devices{instance="a", state="offline"} 0x10 1x15 0x95`},

	{"DeviceAccessInventoryUnknown", true, "counting takes too long", `
		deviceaccess_inventory_up{instance="a"} 1x10 0x11 1x99
		deviceaccess_database_up{instance="a"} 1x120
		deviceaccess_codes_overdue{instance="a"} 0x10 _x11 0x99`},
	{"DeviceAccessInventoryUnknown", false, "one of two servers fails to count, and later both do for nine minutes", `
		deviceaccess_inventory_up{instance="a"} 1x10 0x110
		deviceaccess_inventory_up{instance="b"} 1x50 0x9 1x60
		deviceaccess_database_up{instance="a"} 1x120`},
	{"DeviceAccessDatabaseDown", true, "nothing is counted, because no server reaches the database", `
		deviceaccess_inventory_up{instance="a"} 1x10 0x30 1x80
		deviceaccess_database_up{instance="a"} 1x10 0x30 1x80`},

	{"DeviceAccessBatteryLow", true, "a battery becomes critical", `
		deviceaccess_devices_battery{instance="a", level="low"} 1x10 0x110
		deviceaccess_devices_battery{instance="a", level="critical"} 0x10 1x110`},
	{"DeviceAccessBatteryLow", false, "a lock reports a low battery while it is cold", `
		deviceaccess_devices_battery{instance="a", level="low"} 0x10 1x25 0x85`},

	{"DeviceAccessCertificateExpires", true, "one of two servers keeps a certificate that expires in 7 days", `
		deviceaccess_tls_certificate_expiry_timestamp_seconds{instance="a"} 606600x120
		deviceaccess_tls_certificate_expiry_timestamp_seconds{instance="b"} 8000000x120`},
	{"DeviceAccessCertificateExpires", false, "a certificate is renewed in time, and a server has no HTTPS", `
		deviceaccess_tls_certificate_expiry_timestamp_seconds{instance="a"} 605100x14 8000000x106
		deviceaccess_tls_certificate_expiry_timestamp_seconds{instance="b"}` + strings.Repeat(" Inf", 121)},

	{"DeviceAccessBackupTooOld", true, "the last backup is 36 hours old", `
		deviceaccess_last_backup_timestamp_seconds{instance="a"} -128000+0x120`},
	{"DeviceAccessBackupTooOld", false, "a backup is made in time", `
		deviceaccess_last_backup_timestamp_seconds{instance="a"} -128000+0x20 1200x100`},
}
