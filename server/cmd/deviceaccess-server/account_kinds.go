package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zigbee2mqtt"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

// accountKind describes how the command line connects accounts of one adapter.
type accountKind struct {
	adapter string
	usage   string
	blank   func() app.Connection
	// flags returns the flags of the kind. With connect, required flags are marked and defaults are set.
	flags func(connect bool) []cli.Flag
	// read copies the flags that are set to a connection.
	read func(ctx context.Context, c *cli.Command, to app.Connection) error
}

func accountKinds() []accountKind {
	return []accountKind{
		{
			adapter: "zwavejs",
			usage:   "connect a zwave-js-server, such as that of Z-Wave JS UI or Home Assistant",
			blank:   func() app.Connection { return &app.ZWaveJS{} },
			flags:   zwaveJSFlags,
			read:    readZWaveJS,
		},
		{
			adapter: "zigbee2mqtt",
			usage:   "connect Zigbee2MQTT through its MQTT broker",
			blank:   func() app.Connection { return &app.Zigbee2MQTT{} },
			flags:   zigbee2MQTTFlags,
			read:    readZigbee2MQTT,
		},
		{
			adapter: "devicecloud",
			usage:   "connect a vendor's cloud that implements the device-cloud API",
			blank:   func() app.Connection { return &app.DeviceCloud{} },
			flags:   deviceCloudFlags,
			read:    readDeviceCloud,
		},
		{
			adapter: "accesscloud",
			usage:   "connect a vendor's cloud of access systems that implements the API of the simulated one",
			blank:   func() app.Connection { return &app.AccessCloud{} },
			flags:   accessCloudFlags,
			read:    readAccessCloud,
		},
	}
}

// isSet reports whether a flag or variable of the kind is set.
func (k accountKind) isSet(c *cli.Command) bool {
	return slices.ContainsFunc(k.flags(false), func(f cli.Flag) bool {
		name := f.Names()[0]
		_, set := os.LookupEnv(secretVariables[name])
		return set || c.IsSet(name)
	})
}

func zwaveJSFlags(connect bool) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "url", Required: connect, Usage: "connect to `URL`, such as ws://host:3000"},
		&cli.StringFlag{Name: "username", Usage: "log in as `USER` at the proxy in front of the server"},
		&cli.StringFlag{
			Name: "password-file",
			Usage: "read the password from `FILE`, or from standard input if it is - (default: the variable " +
				"DEVICEACCESS_GATEWAY_PASSWORD)",
		},
		&cli.StringFlag{Name: "ca", Usage: caUsage},
		&cli.StringFlag{
			Name: "time-zone",
			Usage: "interpret the locks' clocks in the time zone `NAME`, such as Europe/Berlin; required for time frames " +
				"that locks keep themselves",
		},
	}
}

const caUsage = "trust the CA certificate in `FILE` (PEM) in addition to those of this machine; an empty name " +
	"removes it"

func readZWaveJS(ctx context.Context, c *cli.Command, to app.Connection) error {
	z := to.(*app.ZWaveJS)
	u, err := url.Parse(z.URL)
	if c.IsSet("url") {
		z.FromWebview = false
		u, err = url.Parse(c.String("url"))
	}
	if err != nil {
		return fmt.Errorf("--url: not a URL such as ws://host:3000")
	}
	if c.IsSet("url") && u.User != nil {
		return fmt.Errorf(
			"--url: other users can see a process's flags; set the user with --username and the password with --password-file",
		)
	}
	old, _ := url.Parse(z.URL)
	user, password := "", ""
	if old != nil && old.User != nil {
		user = old.User.Username()
		password, _ = old.User.Password()
	}
	if setText(c, "username", &user); user == "" {
		password = ""
	}
	if err := readSecret(ctx, c, "password-file", &password); err != nil {
		return err
	}
	if user == "" && password != "" {
		return fmt.Errorf("a password needs a user: set --username")
	}
	u.User = nil
	if user != "" {
		u.User = url.UserPassword(user, password)
	}
	z.URL = u.String()
	setText(c, "time-zone", &z.TimeZone)
	return readPEM(ctx, c, "ca", &z.CA)
}

func zigbee2MQTTFlags(connect bool) []cli.Flag {
	topic := &cli.StringFlag{
		Name:  "topic",
		Usage: "subscribe below `TOPIC`, the base_topic in the configuration of Zigbee2MQTT",
	}
	if connect {
		topic.Value = zigbee2mqtt.DefaultTopic
	}
	return []cli.Flag{
		&cli.StringFlag{
			Name:     "broker",
			Required: connect,
			Usage: "connect to the MQTT 5 broker at `URL`: mqtts://host:8883, mqtt://host:1883 (no encryption), " +
				"wss://host/mqtt, or ws://host:9001",
		},
		topic,
		&cli.StringFlag{Name: "username", Usage: "log in to the broker as `USER`"},
		&cli.StringFlag{
			Name: "password-file",
			Usage: "read the password from `FILE`, or from standard input if it is - (default: the variable " +
				"DEVICEACCESS_GATEWAY_PASSWORD)",
		},
		&cli.StringFlag{Name: "ca", Usage: caUsage},
		&cli.StringFlag{
			Name:  "cert",
			Usage: "present the client certificate in `FILE` (PEM) to the broker; an empty name removes it",
		},
		&cli.StringFlag{
			Name:  "key",
			Usage: "read the certificate's private key from `FILE` (PEM, without a passphrase); an empty name removes it",
		},
	}
}

func readZigbee2MQTT(ctx context.Context, c *cli.Command, to app.Connection) (err error) {
	z := to.(*app.Zigbee2MQTT)
	setText(c, "broker", &z.Broker)
	if c.IsSet("broker") {
		z.FromWebview = false
	}
	setText(c, "topic", &z.Topic)
	setText(c, "username", &z.Username)
	if err := readSecret(ctx, c, "password-file", &z.Password); err != nil {
		return err
	}
	return errors.Join(readPEM(ctx, c, "ca", &z.CA), readPEM(ctx, c, "cert", &z.Cert), readPEM(ctx, c, "key", &z.Key))
}

func deviceCloudFlags(connect bool) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "url", Required: connect, Usage: "connect to the cloud at `URL`"},
		&cli.StringFlag{
			Name: "token-file",
			Usage: "read the account's token from `FILE`, or from standard input if it is - (default: the variable " +
				"DEVICEACCESS_GATEWAY_TOKEN)",
		},
		&cli.StringFlag{
			Name:  "provider",
			Usage: "use `NAME` as the device_provider_name of locks that do not report one",
		},
	}
}

func readDeviceCloud(ctx context.Context, c *cli.Command, to app.Connection) error {
	d := to.(*app.DeviceCloud)
	setText(c, "url", &d.BaseURL)
	d.BaseURL = strings.TrimRight(d.BaseURL, "/")
	setText(c, "provider", &d.Provider)
	if err := readSecret(ctx, c, "token-file", &d.Token); err != nil {
		return err
	}
	if d.Token == "" {
		return fmt.Errorf("the cloud needs a token: set --token-file or DEVICEACCESS_GATEWAY_TOKEN")
	}
	return nil
}

func accessCloudFlags(connect bool) []cli.Flag {
	return deviceCloudFlags(connect)[:2]
}

func readAccessCloud(ctx context.Context, c *cli.Command, to app.Connection) error {
	a := to.(*app.AccessCloud)
	setText(c, "url", &a.BaseURL)
	a.BaseURL = strings.TrimRight(a.BaseURL, "/")
	if err := readSecret(ctx, c, "token-file", &a.Token); err != nil {
		return err
	}
	if a.Token == "" {
		return fmt.Errorf("the cloud needs a token: set --token-file or DEVICEACCESS_GATEWAY_TOKEN")
	}
	return nil
}

// setText copies a flag that is set. It copies the flag's default if *to is empty.
func setText(c *cli.Command, name string, to *string) {
	if c.IsSet(name) || *to == "" {
		*to = c.String(name)
	}
}

var secretVariables = map[string]string{
	"password-file": "DEVICEACCESS_GATEWAY_PASSWORD",
	"token-file":    "DEVICEACCESS_GATEWAY_TOKEN",
}

// readSecret reads a secret from a file or the environment. It is not a flag: other users can see a process's flags.
func readSecret(ctx context.Context, c *cli.Command, flag string, to *string) error {
	if !c.IsSet(flag) {
		if value, ok := os.LookupEnv(secretVariables[flag]); ok {
			*to = value
		}
		return nil
	}
	b, err := readFile(ctx, c.String(flag))
	if err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	*to = strings.TrimRight(string(b), "\r\n")
	return nil
}

func readPEM(ctx context.Context, c *cli.Command, flag string, to *string) error {
	if !c.IsSet(flag) {
		return nil
	}
	if c.String(flag) == "" {
		*to = ""
		return nil
	}
	b, err := readFile(ctx, c.String(flag))
	if err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	*to = string(b)
	return nil
}

func readFile(ctx context.Context, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(stdin(ctx))
	}
	return os.ReadFile(file) //nolint:gosec // the operator names the file
}
