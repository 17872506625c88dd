package climate

import "math"

// Fahrenheit converts °C to °F.
func Fahrenheit(celsius float64) float64 { return celsius*9/5 + 32 }

// Celsius converts °F to °C.
func Celsius(fahrenheit float64) float64 { return (fahrenheit - 32) * 5 / 9 }

// Round rounds a temperature to the 0.01° that the API shows.
func Round(degrees float64) float64 { return math.Round(degrees*100) / 100 }
