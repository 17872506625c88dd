package zigbee2mqtt

import (
	"context"
	"crypto/rand"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/login"
)

// Vendor describes Zigbee2MQTT.
func Vendor() adapter.Vendor {
	return adapter.Vendor{
		Adapter:       "zigbee2mqtt",
		Name:          "zigbee2mqtt",
		DisplayName:   "Zigbee2MQTT",
		Usage:         "connect Zigbee2MQTT through its MQTT broker",
		EntersAddress: true,
		Categories:    []string{adapter.CategoryStable, adapter.CategorySmartlocks},
		Accepts:       []string{adapter.Locks, adapter.Thermostats},
		Can:           capability.Set{OnlineCodes: true, Lock: true, Unlock: true},
		Settings:      settings(),
		Login: &adapter.Login{
			Fields:       fields(),
			Connect:      connect,
			AddressField: "broker",
			SecretField:  "password",
			Refused:      "The gateway rejects this user and password.",
		},
		New:          func() adapter.Connection { return &Connection{} },
		Verification: adapter.Verification{Level: adapter.VerifiedProgram, With: "Zigbee2MQTT with simulated locks"},
	}
}

func settings() []adapter.Setting {
	return []adapter.Setting{
		{
			Name:     "broker",
			Required: true,
			Usage: "connect to the MQTT 5 broker at `URL`: mqtts://host:8883, mqtt://host:1883 (no encryption), " +
				"wss://host/mqtt, or ws://host:9001",
		},
		{
			Name:    "topic",
			Usage:   "subscribe below `TOPIC`, the base_topic in the configuration of Zigbee2MQTT",
			Default: DefaultTopic,
		},
		{Name: "username", Usage: "log in to the broker as `USER`"},
		{Name: "password", Kind: adapter.SecretSetting, Usage: "password"},
		{Name: "ca", Kind: adapter.FileSetting, Usage: adapter.CAUsage},
		{
			Name:  "cert",
			Kind:  adapter.FileSetting,
			Usage: "present the client certificate in `FILE` (PEM) to the broker; an empty name removes it",
		},
		{
			Name: "key",
			Kind: adapter.FileSetting,
			Usage: "read the certificate's private key from `FILE` (PEM, without a passphrase); an empty name removes " +
				"it",
		},
	}
}

func fields() []login.Field {
	return []login.Field{
		{
			Name:        "broker",
			Label:       "Address of the MQTT broker",
			Prompt:      "Enter the address of the MQTT broker.",
			Kind:        "url",
			Placeholder: "mqtts://broker.example.com:8883",
			Help:        "The address starts with mqtts://, mqtt://, wss://, or ws://. The broker must support MQTT 5.",
		},
		{
			Name:   "topic",
			Label:  "Topic of Zigbee2MQTT",
			Prompt: "Enter the topic of Zigbee2MQTT.",
			Kind:   "text",
			Value:  DefaultTopic,
			Help:   "The base_topic in its configuration.",
		},
		{
			Name:         "username",
			Label:        "User at the broker",
			Kind:         "text",
			Autocomplete: "username",
			Optional:     true,
		},
		{
			Name:         "password",
			Label:        "Password",
			Kind:         "password",
			Autocomplete: "current-password",
			Optional:     true,
		},
	}
}

// connect returns the connection that was entered on a page.
func connect(entered map[string]string) (adapter.Connection, error) {
	if !validTopic(entered["topic"]) {
		return nil, &login.Refusal{
			Field:   "topic",
			Message: "This is not a topic of Zigbee2MQTT. Copy the base_topic of its configuration, such as %s.",
			Args:    []any{DefaultTopic},
		}
	}
	return &Connection{Config: Config{
		Broker:   entered["broker"],
		Topic:    entered["topic"],
		Username: entered["username"],
		Password: entered["password"],
	}}, nil
}

// Connection connects to Zigbee2MQTT through its MQTT broker.
type Connection struct {
	Config
	adapter.PageOrigin
}

// Adapter implements adapter.Connection.
func (Connection) Adapter() string { return "zigbee2mqtt" }

// Apply implements adapter.Connection.
func (c *Connection) Apply(set adapter.Settings) error {
	if _, ok := set["broker"]; ok {
		c.FromWebview = false
	}
	set.Set("broker", &c.Broker)
	set.Set("topic", &c.Topic)
	set.Set("username", &c.Username)
	set.Set("password", &c.Password)
	set.Set("ca", &c.CA)
	set.Set("cert", &c.Cert)
	set.Set("key", &c.Key)
	return nil
}

// Check implements adapter.Connection.
func (c Connection) Check(ctx context.Context, env adapter.Env) (found adapter.Checked, err error) {
	c.Control = env.Guard
	c.CheckGateway = found.RecordGateway
	err = Check(ctx, c.Config)
	return found, err
}

// Open implements adapter.DeviceConnection.
func (c Connection) Open(_ context.Context, env adapter.Env) (adapter.Adapter, error) {
	c.Log, c.Control, c.CheckGateway = env.Log, env.Guard, env.CheckGateway
	return New(c.Config)
}

// Stranger implements adapter.Stranger.
func (c Connection) Stranger() adapter.Connection {
	if c.Password == "" {
		return nil
	}
	c.Password = rand.Text()
	return &c
}
