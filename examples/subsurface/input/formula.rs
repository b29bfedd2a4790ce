//! Formulas of the place: expressions of x, y, z and the constants of the file.
//!
//! The words of a formula are read here first. So messages are those of this program, and one trap is refused: the expression
//! library lets a sign bind tighter than `^`, so that −x² would be (−x)².

use std::collections::BTreeMap;

use exmex::{Express, FlatEx, FloatOpsFactory, MakeOperators, MatchLiteral, literal_matcher_from_pattern};

/// Numbers by name, for formulas.
pub(crate) type Constants = BTreeMap<String, f64>;

/// Longer formulas are refused.
const MOST_LETTERS: usize = 2000;

// Numbers, also as in 2.5e-8.
literal_matcher_from_pattern!(Decimal, r"^([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?");

type Expression = FlatEx<f64, FloatOpsFactory<f64>, Decimal>;

/// What stands for a variable of a formula.
#[derive(Debug, Clone, Copy)]
enum Slot {
    /// The coordinate along an axis of the grid.
    Axis(usize),
    Constant(f64),
}

/// An expression of x, y, z and the constants of the file.
#[derive(Debug, Clone)]
pub(crate) struct Formula {
    expression: Expression,
    slots: Vec<Slot>,
}

impl Formula {
    /// # Errors
    /// What is wrong with the text, in one line.
    pub(crate) fn new(text: &str, constants: &Constants) -> Result<Formula, String> {
        if text.len() > MOST_LETTERS {
            return Err(format!("a formula of {} letters; {MOST_LETTERS} are allowed", text.len()));
        }
        let failed = |why: String| format!("\"{}\" is no formula: {why}", text.replace('\n', " "));
        let words = words(text).map_err(failed)?;
        let known = || ["x", "y", "z"].into_iter().chain(constants.keys().map(String::as_str)).collect::<Vec<_>>();
        let is_unknown = |word: &&Word<'_>| matches!(word, Word::Name(name) if !known().contains(name));
        if let Some(Word::Name(name)) = words.iter().find(is_unknown) {
            return Err(failed(format!("there is no `{name}`; known are {}", known().join(", "))));
        }
        check_signs(&words).map_err(failed)?;
        let incomplete = || failed("something is missing or too much; one like \"2 - 0.01*x\" is needed".into());
        let expression = Expression::parse(text).map_err(|_| incomplete())?;
        let slot = |name: &String| match name.as_str() {
            "z" => Ok(Slot::Axis(0)),
            "x" => Ok(Slot::Axis(1)),
            "y" => Ok(Slot::Axis(2)),
            other => constants.get(other).copied().map(Slot::Constant).ok_or_else(incomplete),
        };
        let slots: Vec<Slot> = expression.var_names().iter().map(slot).collect::<Result<_, _>>()?;
        let formula = Formula { expression, slots };
        formula.expression.eval(&vec![0.5; formula.slots.len()]).map_err(|_| incomplete())?;
        Ok(formula)
    }

    /// The value at a place; no number where there is none.
    pub(crate) fn at(&self, place: [f64; 3]) -> f64 {
        let value = |slot: &Slot| match *slot {
            Slot::Axis(axis) => place[axis],
            Slot::Constant(value) => value,
        };
        self.expression.eval(&self.slots.iter().map(value).collect::<Vec<_>>()).unwrap_or(f64::NAN)
    }
}

/// Whether a constant can have a name.
pub(crate) fn is_free(name: &str) -> bool {
    let is_variable = matches!(words(name).as_deref(), Ok([Word::Name(word)]) if *word == name);
    is_variable && !["x", "y", "z"].contains(&name) && Expression::parse(name).is_ok_and(|e| e.var_names() == [name])
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word<'a> {
    Number,
    /// A name that is no function and no number of the language.
    Name(&'a str),
    Function,
    Sign,
    Operator(char),
    Open,
    Close,
    Comma,
}

/// The words of a formula.
fn words(text: &str) -> Result<Vec<Word<'_>>, String> {
    let operators = FloatOpsFactory::<f64>::make();
    let mut words: Vec<Word<'_>> = Vec::new();
    let mut rest = text.trim_start_matches(' ');
    while let Some(first) = rest.chars().next() {
        let is_letter = |c: char| c.is_alphanumeric() || c == '_';
        let (word, length) = if let Some(number) = Decimal::is_literal(rest) {
            (Word::Number, number.len())
        } else if is_letter(first) {
            let name = &rest[..rest.find(|c| !is_letter(c)).unwrap_or(rest.len())];
            let operator = operators.iter().find(|operator| operator.repr() == name);
            let word = match operator {
                Some(operator) if operator.constant().is_some() => Word::Number,
                Some(_) => Word::Function,
                None => Word::Name(name),
            };
            (word, name.len())
        } else {
            let is_behind_value = matches!(words.last(), Some(Word::Number | Word::Name(_) | Word::Close));
            let word = match first {
                '(' => Word::Open,
                ')' => Word::Close,
                ',' => Word::Comma,
                '+' | '-' if !is_behind_value => Word::Sign,
                '+' | '-' | '*' | '/' | '^' => Word::Operator(first),
                other => return Err(format!("`{other}` means nothing in it")),
            };
            (word, 1)
        };
        words.push(word);
        rest = rest[length..].trim_start_matches(' ');
    }
    let mut depth = 0_usize;
    for word in &words {
        depth = match word {
            Word::Open => depth + 1,
            Word::Close => depth.checked_sub(1).ok_or("a parenthesis is closed that was not opened")?,
            _ => depth,
        };
    }
    if depth > 0 { Err("a parenthesis is not closed".into()) } else { Ok(words) }
}

/// Finds a sign before the base of a power.
fn check_signs(words: &[Word<'_>]) -> Result<(), String> {
    for (place, _) in words.iter().enumerate().filter(|(_, word)| **word == Word::Sign) {
        let mut end = place + 1;
        while matches!(words.get(end), Some(Word::Sign | Word::Function)) {
            end += 1;
        }
        if words.get(end) == Some(&Word::Open) {
            let mut depth = 0_usize;
            for word in &words[end..] {
                depth = depth + usize::from(*word == Word::Open) - usize::from(*word == Word::Close);
                if depth == 0 {
                    break;
                }
                end += 1;
            }
        }
        if words.get(end + 1) == Some(&Word::Operator('^')) {
            return Err("a sign before a power needs parentheses: -(x^2) or (-x)^2".into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<f64, String> {
        let constants = Constants::from([("alpha".to_owned(), 0.5)]);
        Formula::new(text, &constants).map(|formula| formula.at([2.0, 3.0, 5.0]))
    }

    #[test]
    fn formulas_have_their_values() {
        for (text, expected) in [
            ("4 - x^2", -5.0),
            ("2^-1", 0.5),
            ("-x", -3.0),
            ("-x*y", -15.0),
            ("2*-x", -6.0),
            ("-(x^2)", -9.0),
            ("(-x)^2", 9.0),
            ("-x + y^2", 22.0),
            ("1e-4*z", 2e-4),
            ("2e-8*(1 - x/100)", 2e-8 * (1.0 - 0.03)),
            ("2.5E+1 + .5", 25.5),
            ("3e2-1", 299.0),
            ("x-1", 2.0),
            ("alpha*z", 1.0),
            ("exp(-z)", (-2.0_f64).exp()),
            ("2*sin(PI*x)^2", 2.0 * (3.0 * std::f64::consts::PI).sin().powi(2)),
            ("sqrt(z + 2)", 2.0),
            ("abs(1 - x) - tanh(z)", 2.0 - 2.0_f64.tanh()),
            ("max(x, y)", 5.0),
            // Powers from left to right.
            ("2^3^2", 64.0),
        ] {
            let found = value(text).unwrap();
            assert!((found - expected).abs() <= 1e-15 * expected.abs(), "{text}: {found}, expected {expected}");
        }
    }

    #[test]
    fn a_sign_before_a_power_is_refused() {
        for text in
            ["-x^2", "- x ^2", "4*-x^2", "-(x+1)^2", "-2^2", "-sin(x)^2", "--x^2", "2^-x^2", "(-x^2)", "exp(-x^2)", "+x^2"]
        {
            let error = value(text).unwrap_err();
            assert!(error.contains("needs parentheses") && !error.contains('\n'), "{text}: {error}");
        }
    }

    #[test]
    fn mistakes_are_told_in_plain_words() {
        for (text, part) in [
            ("x +", "missing or too much"),
            ("x x", "missing or too much"),
            ("", "missing or too much"),
            ("(x", "not closed"),
            ("x)", "not opened"),
            ("{x}", "`{` means nothing"),
            ("depth*x", "there is no `depth`; known are x, y, z, alpha"),
            ("1.2.3", "missing or too much"),
        ] {
            let error = value(text).unwrap_err();
            assert!(error.contains(part) && error.contains("is no formula"), "{text}: {error}");
        }
    }
}
