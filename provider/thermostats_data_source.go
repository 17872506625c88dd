package provider

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
)

type thermostatsDataSource struct{ connectedDataSource }

func newThermostatsDataSource() datasource.DataSource { return &thermostatsDataSource{} }

// deviceConditions are the conditions of data sources that list the devices of a kind.
type deviceConditions struct {
	DeviceType         types.String `tfsdk:"device_type"`
	Manufacturer       types.String `tfsdk:"manufacturer"`
	ConnectedAccountID types.String `tfsdk:"connected_account_id"`
	ConnectWebviewID   types.String `tfsdk:"connect_webview_id"`
	CustomerKey        types.String `tfsdk:"customer_key"`
}

// deviceConditionAttributes returns the attributes of deviceConditions.
func deviceConditionAttributes(kind, exampleType, exampleManufacturer string) map[string]schema.Attribute {
	identifier := func(description string) schema.Attribute {
		return schema.StringAttribute{
			Optional:            true,
			Validators:          []validator.String{validators.OptionalIdentifier{}},
			MarkdownDescription: description,
		}
	}
	text := func(description string) schema.Attribute {
		return schema.StringAttribute{Optional: true, MarkdownDescription: description}
	}
	return map[string]schema.Attribute{
		"device_type":          text("Only " + kind + " of this type, such as `" + exampleType + "`."),
		"manufacturer":         text("Only " + kind + " of this manufacturer, such as `" + exampleManufacturer + "`."),
		"connected_account_id": identifier("Only " + kind + " of this connected account."),
		"connect_webview_id":   identifier("Only " + kind + " of the account that was connected on this page."),
		"customer_key":         text("Only " + kind + " of accounts with this customer key."),
	}
}

// excludes reports whether a device does not match the conditions: some servers ignore them.
func (c *deviceConditions) excludes(device api.Device) bool {
	differs := func(wanted types.String, is string) bool {
		return wanted.ValueString() != "" && wanted.ValueString() != is
	}
	return differs(c.DeviceType, device.DeviceType) || differs(c.ConnectedAccountID, device.ConnectedAccountID)
}

type thermostatsModel struct {
	deviceConditions

	Thermostats []thermostatModel `tfsdk:"thermostats"`
}

type thermostatModel struct {
	DeviceID           types.String `tfsdk:"device_id"`
	DeviceType         types.String `tfsdk:"device_type"`
	DisplayName        types.String `tfsdk:"display_name"`
	ConnectedAccountID types.String `tfsdk:"connected_account_id"`
	LocationName       types.String `tfsdk:"location_name"`
	TimeZone           types.String `tfsdk:"time_zone"`
	Online             types.Bool   `tfsdk:"online"`

	HVACModes []string `tfsdk:"available_hvac_mode_settings"`
	FanModes  []string `tfsdk:"available_fan_mode_settings"`

	MinHeatingCelsius    types.Float64 `tfsdk:"min_heating_set_point_celsius"`
	MinHeatingFahrenheit types.Float64 `tfsdk:"min_heating_set_point_fahrenheit"`
	MaxHeatingCelsius    types.Float64 `tfsdk:"max_heating_set_point_celsius"`
	MaxHeatingFahrenheit types.Float64 `tfsdk:"max_heating_set_point_fahrenheit"`
	MinCoolingCelsius    types.Float64 `tfsdk:"min_cooling_set_point_celsius"`
	MinCoolingFahrenheit types.Float64 `tfsdk:"min_cooling_set_point_fahrenheit"`
	MaxCoolingCelsius    types.Float64 `tfsdk:"max_cooling_set_point_celsius"`
	MaxCoolingFahrenheit types.Float64 `tfsdk:"max_cooling_set_point_fahrenheit"`
	MinDeltaCelsius      types.Float64 `tfsdk:"min_heating_cooling_delta_celsius"`
	MinDeltaFahrenheit   types.Float64 `tfsdk:"min_heating_cooling_delta_fahrenheit"`

	ClimatePresets    []listedClimatePresetModel `tfsdk:"available_climate_presets"`
	FallbackPresetKey types.String               `tfsdk:"fallback_climate_preset_key"`
}

// listedClimatePresetModel is a climate preset of a thermostat.
type listedClimatePresetModel struct {
	ClimatePresetKey types.String `tfsdk:"climate_preset_key"`
	DisplayName      types.String `tfsdk:"display_name"`
	HVACModeSetting  types.String `tfsdk:"hvac_mode_setting"`
	CanEdit          types.Bool   `tfsdk:"can_edit"`
	CanDelete        types.Bool   `tfsdk:"can_delete"`
}

func (d *thermostatsDataSource) Metadata(
	_ context.Context,
	req datasource.MetadataRequest,
	resp *datasource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_thermostats"
}

func (d *thermostatsDataSource) Schema(
	_ context.Context,
	_ datasource.SchemaRequest,
	resp *datasource.SchemaResponse,
) {
	attributes := deviceConditionAttributes("thermostats", "ecobee_thermostat", "ecobee")
	attributes["thermostats"] = schema.ListNestedAttribute{
		Computed:            true,
		MarkdownDescription: "The thermostats, in the order in which the server first saw them.",
		NestedObject:        schema.NestedAttributeObject{Attributes: thermostatAttributes()},
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "The thermostats of the workspace and their limits: all of them, or those that match " +
			"every condition.",
		Attributes: attributes,
	}
}

// thermostatAttributes returns the attributes of thermostatModel.
func thermostatAttributes() map[string]schema.Attribute {
	texts := func(description string) schema.Attribute {
		return schema.ListAttribute{
			Computed:            true,
			ElementType:         types.StringType,
			MarkdownDescription: description,
		}
	}
	attributes := map[string]schema.Attribute{
		"device_id":            computedText("The identifier of the thermostat."),
		"device_type":          computedText("The type of the thermostat, such as `ecobee_thermostat`."),
		"display_name":         computedText("The name of the thermostat."),
		"connected_account_id": computedText("The connected account that the thermostat belongs to."),
		"location_name":        computedText("The place of the thermostat. Null if that is not known."),
		"time_zone": computedText("The time zone of the thermostat, such as `Europe/Paris`. Null if that is not " +
			"known."),
		"online": schema.BoolAttribute{
			Computed: true,
			MarkdownDescription: "Whether the server could reach the thermostat when it last heard from the " +
				"thermostat.",
		},
		"available_hvac_mode_settings": texts("The modes of the thermostat, such as `heat`."),
		"available_fan_mode_settings": texts("The modes of its fan, such as `auto`. Empty if the server cannot set " +
			"the fan."),
		"fallback_climate_preset_key": computedText("The climate preset that the server sets when a schedule ends. " +
			"Null if there is none."),
		"available_climate_presets": schema.ListNestedAttribute{
			Computed:            true,
			MarkdownDescription: "The climate presets: those of the thermostat itself, then those of the workspace.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"climate_preset_key": computedText("The key by which schedules name the preset."),
				"display_name":       computedText("The name of the preset, for people."),
				"hvac_mode_setting":  computedText("The mode of the preset. Null if it keeps the mode."),
				"can_edit": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the preset can be " +
					"changed."},
				"can_delete": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the preset can be " +
					"deleted."},
			}},
		},
	}
	for name, description := range map[string]string{
		"min_heating_set_point":     "The lowest heating set point",
		"max_heating_set_point":     "The highest heating set point",
		"min_cooling_set_point":     "The lowest cooling set point",
		"max_cooling_set_point":     "The highest cooling set point",
		"min_heating_cooling_delta": "The least difference of the set points in the mode `heat_cool`",
	} {
		for suffix, unit := range map[string]string{"_celsius": "°C", "_fahrenheit": "°F"} {
			attributes[name+suffix] = schema.Float64Attribute{
				Computed:            true,
				MarkdownDescription: description + " in " + unit + ". Null if that is not known.",
			}
		}
	}
	return attributes
}

func (d *thermostatsDataSource) Read(
	ctx context.Context,
	req datasource.ReadRequest,
	resp *datasource.ReadResponse,
) {
	var model thermostatsModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	client := d.client(req, resp)
	if client == nil || resp.Diagnostics.HasError() {
		return
	}
	devices, err := api.Collect(client.Thermostats(ctx, model.request()))
	if err != nil {
		report(&resp.Diagnostics, "list thermostats", err)
		return
	}
	model.Thermostats = []thermostatModel{}
	for _, device := range slices.DeleteFunc(devices, model.excludes) {
		var thermostat thermostatModel
		thermostat.fill(&device)
		model.Thermostats = append(model.Thermostats, thermostat)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

func (m *thermostatsModel) request() api.ListThermostatsRequest {
	return api.ListThermostatsRequest{
		DeviceType:         m.DeviceType.ValueString(),
		Manufacturer:       m.Manufacturer.ValueString(),
		ConnectedAccountID: m.ConnectedAccountID.ValueString(),
		ConnectWebviewID:   m.ConnectWebviewID.ValueString(),
		CustomerKey:        m.CustomerKey.ValueString(),
	}
}

func (m *thermostatModel) fill(device *api.Device) {
	p := device.Properties
	*m = thermostatModel{
		DeviceID:             types.StringValue(device.DeviceID),
		DeviceType:           types.StringValue(device.DeviceType),
		DisplayName:          types.StringValue(device.DisplayName),
		ConnectedAccountID:   types.StringValue(device.ConnectedAccountID),
		LocationName:         textOrNull(device.Location.LocationName),
		TimeZone:             textOrNull(device.Location.TimeZone),
		Online:               types.BoolValue(p.Online),
		HVACModes:            append([]string{}, p.AvailableHvacModeSettings...),
		FanModes:             append([]string{}, p.AvailableFanModeSettings...),
		MinHeatingCelsius:    types.Float64PointerValue(p.MinHeatingSetPointCelsius),
		MinHeatingFahrenheit: types.Float64PointerValue(p.MinHeatingSetPointFahrenheit),
		MaxHeatingCelsius:    types.Float64PointerValue(p.MaxHeatingSetPointCelsius),
		MaxHeatingFahrenheit: types.Float64PointerValue(p.MaxHeatingSetPointFahrenheit),
		MinCoolingCelsius:    types.Float64PointerValue(p.MinCoolingSetPointCelsius),
		MinCoolingFahrenheit: types.Float64PointerValue(p.MinCoolingSetPointFahrenheit),
		MaxCoolingCelsius:    types.Float64PointerValue(p.MaxCoolingSetPointCelsius),
		MaxCoolingFahrenheit: types.Float64PointerValue(p.MaxCoolingSetPointFahrenheit),
		MinDeltaCelsius:      types.Float64PointerValue(p.MinHeatingCoolingDeltaCelsius),
		MinDeltaFahrenheit:   types.Float64PointerValue(p.MinHeatingCoolingDeltaFahrenheit),
		ClimatePresets:       []listedClimatePresetModel{},
		FallbackPresetKey:    types.StringPointerValue(p.FallbackClimatePresetKey.To),
	}
	if p.AvailableClimatePresets == nil {
		return
	}
	for _, preset := range *p.AvailableClimatePresets {
		m.ClimatePresets = append(m.ClimatePresets, listedClimatePresetModel{
			ClimatePresetKey: types.StringValue(preset.ClimatePresetKey),
			DisplayName:      types.StringValue(preset.DisplayName),
			HVACModeSetting:  textOrNull(preset.HvacModeSetting),
			CanEdit:          types.BoolValue(preset.CanEdit),
			CanDelete:        types.BoolValue(preset.CanDelete),
		})
	}
}
