package nukitest

import "time"

const keypadCode = 13

// auth is an authorization in a response or a push.
type auth struct {
	ID           string     `json:"id"`
	SmartlockID  int64      `json:"smartlockId"`
	AuthID       int        `json:"authId"`
	Code         *int       `json:"code,omitempty"`
	Type         int        `json:"type"`
	Name         string     `json:"name"`
	Enabled      bool       `json:"enabled"`
	Remote       bool       `json:"remoteAllowed"`
	From         *time.Time `json:"allowedFromDate,omitempty"`
	Until        *time.Time `json:"allowedUntilDate,omitempty"`
	WeekDays     int        `json:"allowedWeekDays"`
	FromTime     int        `json:"allowedFromTime"`
	UntilTime    int        `json:"allowedUntilTime"`
	CreationDate time.Time  `json:"creationDate"`
	UpdateDate   time.Time  `json:"updateDate"`
	OperationID  *struct{}  `json:"operationId,omitempty"`
}

// authRequest creates or changes an authorization.
type authRequest struct {
	Name      string     `json:"name"`
	Code      int        `json:"code"`
	Enabled   *bool      `json:"enabled"`
	Remote    bool       `json:"remoteAllowed"`
	From      *time.Time `json:"allowedFromDate"`
	Until     *time.Time `json:"allowedUntilDate"`
	WeekDays  *int       `json:"allowedWeekDays"`
	FromTime  int        `json:"allowedFromTime"`
	UntilTime int        `json:"allowedUntilTime"`
}

// apply writes a request into an authorization.
func (r authRequest) apply(to *auth) {
	code, days := r.Code, 127
	if r.WeekDays != nil {
		days = *r.WeekDays
	}
	to.Name, to.Code, to.Remote, to.From, to.Until = r.Name, &code, r.Remote, r.From, r.Until
	to.WeekDays, to.FromTime, to.UntilTime = days, r.FromTime, r.UntilTime
	to.Enabled = r.Enabled == nil || *r.Enabled
}

// logEntry is an entry of the activity log.
type logEntry struct {
	ID          string    `json:"id"`
	SmartlockID int64     `json:"smartlockId"`
	Name        string    `json:"name"`
	Action      int       `json:"action"`
	Trigger     int       `json:"trigger"`
	State       int       `json:"state"`
	AuthID      string    `json:"authId,omitempty"`
	Date        time.Time `json:"date"`
	Source      int       `json:"source"`
}

type smartlock struct {
	ID       int64          `json:"smartlockId"`
	Account  int            `json:"accountId"`
	Type     int            `json:"type"`
	Name     string         `json:"name"`
	Config   config         `json:"config"`
	Advanced advancedConfig `json:"advancedConfig"`
	State    state          `json:"state"`
	Firmware int            `json:"firmwareVersion"`
	Server   int            `json:"serverState"`
	Virtual  bool           `json:"virtualDevice"`
}

type config struct {
	Keypad  bool `json:"keypadPaired"`
	Keypad2 bool `json:"keypad2Paired"`
}

type state struct {
	State           int  `json:"state"`
	BatteryCritical bool `json:"batteryCritical"`
	BatteryCharge   int  `json:"batteryCharge"`
	DoorState       int  `json:"doorState"`
}

func (l *Lock) wire() smartlock {
	return smartlock{
		ID:       l.ID,
		Account:  AccountID,
		Type:     l.kind,
		Name:     l.name,
		Config:   config{Keypad: l.keypad},
		Advanced: l.auto,
		State:    state{State: l.state, BatteryCharge: 80, DoorState: 2},
		Firmware: 198_400,
		Server:   l.server,
	}
}

type webhook struct {
	ID       int      `json:"id"`
	Secret   string   `json:"secret,omitempty"`
	URL      string   `json:"webhookUrl"`
	Features []string `json:"webhookFeatures"`
}
