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

// accountKind is one way to reach locks, as the command line has it.
type accountKind struct {
	adapter string
	usage   string
	blank   func() app.Connection
	flags   func(connect bool) []cli.Flag                                      // those of connect have defaults, and may be required
	read    func(ctx context.Context, c *cli.Command, to app.Connection) error // takes over the flags that are set
}

func accountKinds() []accountKind {
	return []accountKind{
		{adapter: "zwavejs", usage: "a zwave-js-server, as Z-Wave JS UI and Home Assistant run it", blank: func() app.Connection { return &app.ZWaveJS{} },
			flags: zwaveJSFlags, read: readZWaveJS},
		{adapter: "zigbee2mqtt", usage: "a Zigbee2MQTT, by way of its MQTT broker", blank: func() app.Connection { return &app.Zigbee2MQTT{} },
			flags: zigbee2MQTTFlags, read: readZigbee2MQTT},
		{adapter: "devicecloud", usage: "a vendor's cloud that follows the device-cloud contract", blank: func() app.Connection { return &app.DeviceCloud{} },
			flags: deviceCloudFlags, read: readDeviceCloud},
		{adapter: "accesscloud", usage: "a vendor's cloud of access systems that follows the contract of the simulated one", blank: func() app.Connection { return &app.AccessCloud{} },
			flags: accessCloudFlags, read: readAccessCloud},
	}
}

// given says whether anything is given of how such an account is reached, be it in the environment.
func (k accountKind) given(c *cli.Command) bool {
	return slices.ContainsFunc(k.flags(false), func(f cli.Flag) bool {
		name := f.Names()[0]
		_, set := os.LookupEnv(secretVariables[name])
		return set || c.IsSet(name)
	})
}

func zwaveJSFlags(connect bool) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "url", Required: connect, Usage: "`URL` of the other end, such as ws://host:3000"},
		&cli.StringFlag{Name: "username", Usage: "`USER` at the proxy or the broker in front of it"},
		&cli.StringFlag{Name: "password-file", Usage: "`FILE` that holds the password; - reads it from standard input. Without it, DEVICEACCESS_GATEWAY_PASSWORD"},
		&cli.StringFlag{Name: "ca", Usage: caUsage},
		&cli.StringFlag{Name: "time-zone", Usage: "`NAME` of the time zone the locks' own clocks show, such as Europe/Berlin; with it locks that can keep time frames do"},
	}
}

const caUsage = "`FILE` with the certificate in PEM that the other end's is signed with, where this machine does not trust it; an empty name forgets it"

func readZWaveJS(ctx context.Context, c *cli.Command, to app.Connection) error {
	z := to.(*app.ZWaveJS)
	u, err := url.Parse(z.URL)
	if c.IsSet("url") {
		z.FromWebview = false
		u, err = url.Parse(c.String("url"))
	}
	if err != nil {
		return fmt.Errorf("--url: write it like ws://host:3000")
	}
	if c.IsSet("url") && u.User != nil {
		return fmt.Errorf("--url: other users can see a process's flags; give the user with --username and the password with --password-file")
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
		return fmt.Errorf("a password is sent with its user only: give that with --username")
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
	topic := &cli.StringFlag{Name: "topic", Usage: "`TOPIC` below which Zigbee2MQTT publishes: base_topic in its configuration"}
	if connect {
		topic.Value = zigbee2mqtt.DefaultTopic
	}
	return []cli.Flag{
		&cli.StringFlag{Name: "broker", Required: connect, Usage: "`URL` of the MQTT broker: mqtts://host:8883, or mqtt://host:1883 without encryption; over WebSocket wss://host/mqtt or ws://host:9001; it must speak MQTT 5"},
		topic,
		&cli.StringFlag{Name: "username", Usage: "`USER` at the broker"},
		&cli.StringFlag{Name: "password-file", Usage: "`FILE` that holds the password; - reads it from standard input. Without it, DEVICEACCESS_GATEWAY_PASSWORD"},
		&cli.StringFlag{Name: "ca", Usage: caUsage},
		&cli.StringFlag{Name: "cert", Usage: "`FILE` with a certificate in PEM for a broker that asks for one; an empty name forgets it"},
		&cli.StringFlag{Name: "key", Usage: "`FILE` with the certificate's key in PEM, without a passphrase; an empty name forgets it"},
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
		&cli.StringFlag{Name: "url", Required: connect, Usage: "`URL` of the other end"},
		&cli.StringFlag{Name: "token-file", Usage: "`FILE` that holds the account's token; - reads it from standard input. Without it, DEVICEACCESS_GATEWAY_TOKEN"},
		&cli.StringFlag{Name: "provider", Usage: "`NAME` of the vendor, as device_provider_name, where its locks do not say it"},
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
		return fmt.Errorf("the cloud needs a token: give --token-file, or DEVICEACCESS_GATEWAY_TOKEN in the environment")
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
		return fmt.Errorf("the cloud needs a token: give --token-file, or DEVICEACCESS_GATEWAY_TOKEN in the environment")
	}
	return nil
}

// setText takes over a flag that is given, or has a default where nothing is set yet.
func setText(c *cli.Command, name string, to *string) {
	if c.IsSet(name) || *to == "" {
		*to = c.String(name)
	}
}

var secretVariables = map[string]string{"password-file": "DEVICEACCESS_GATEWAY_PASSWORD", "token-file": "DEVICEACCESS_GATEWAY_TOKEN"}

// readSecret takes over a secret from a file or from the environment: other users can see a process's flags.
func readSecret(ctx context.Context, c *cli.Command, flag string, to *string) error {
	if !c.IsSet(flag) {
		if value, ok := os.LookupEnv(secretVariables[flag]); ok {
			*to = value
		}
		return nil
	}
	b, err := readWhole(ctx, c.String(flag))
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
	b, err := readWhole(ctx, c.String(flag))
	if err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	*to = string(b)
	return nil
}

func readWhole(ctx context.Context, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(stdin(ctx))
	}
	return os.ReadFile(file) //nolint:gosec // the file that was named
}
