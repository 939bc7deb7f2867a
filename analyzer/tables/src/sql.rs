// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a condition or a query asks, looked at before polars runs it. Polars takes a sum in WHERE for true of every row, looks in
//! silence for a value that no row can have, repeats a sum on every row, and names a sum after its column.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use polars::prelude::{Column, DataFrame, Expr as Plan, IntoLazy};
use polars::sql::sql_expr;
use sqlparser::ast::{
    BinaryOperator, Expr, Function, GroupByExpr, Ident, ObjectName, OrderByKind, Query, Select,
    SelectItem, SetExpr, Statement, TableFactor, Value, Visit, VisitMut, Visitor, VisitorMut,
};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use crate::nearest::nearest;

/// What the values of a column can be.
#[derive(PartialEq)]
pub(crate) struct Values {
    /// The name of their type, as the schema page has it.
    pub ty: &'static str,
    /// All texts that can occur, if they are known beforehand.
    pub words: Option<Vec<String>>,
}

/// The tables that a query can name, and what is known of their columns.
pub(crate) trait Tables {
    /// Returns the names of all tables.
    fn names(&self) -> Vec<&'static str>;
    /// Returns what the values of a table's column can be; None if the table has no such column.
    fn values(&self, table: &str, column: &str) -> Option<Values>;
}

/// Looks at a condition on single rows. Returns what is wrong with it.
pub(crate) fn condition(text: &str, values: &dyn Fn(&str) -> Option<Values>) -> Result<(), String> {
    // Polars says what it cannot parse.
    let Ok(mut parser) = Parser::new(&GenericDialect).try_with_sql(text) else {
        return Ok(());
    };
    let Ok(condition) = parser.parse_expr() else {
        return Ok(());
    };
    let rest = parser.peek_token();
    if rest.token != Token::EOF {
        return Err(format!("{rest} does not belong to a condition"));
    }
    if let Some(sum) = sums(&condition).first() {
        return Err(format!(
            "{sum} is of many rows, and a condition is of one: mostrace query has GROUP BY and HAVING"
        ));
    }
    compared(&condition, values)
}

/// Looks at a query. Returns it with names for the columns that have none, as SQL names them: by their text.
pub(crate) fn query(text: &str, tables: &dyn Tables) -> Result<String, String> {
    let Ok(mut statements) = Parser::parse_sql(&GenericDialect, text) else {
        return Ok(text.to_owned());
    };
    let mut check = Check {
        tables,
        with: BTreeSet::new(),
    };
    if let ControlFlow::Break(what) = statements.visit(&mut check) {
        return Err(what);
    }
    match &mut statements[..] {
        [statement @ Statement::Query(_)] => {
            let _: ControlFlow<()> = statement.visit(&mut Name);
            Ok(statement.to_string())
        }
        _ => Ok(text.to_owned()),
    }
}

/// Looks at each SELECT of a query.
struct Check<'t> {
    tables: &'t dyn Tables,
    /// The names that WITH gives to tables.
    with: BTreeSet<String>,
}

impl Visitor for Check<'_> {
    type Break = String;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<String> {
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        let names = with.map(|table| table.alias.name.value.clone());
        self.with.extend(names);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<String> {
        match self.select(select) {
            Ok(()) => ControlFlow::Continue(()),
            Err(what) => ControlFlow::Break(what),
        }
    }
}

impl Check<'_> {
    fn select(&self, select: &Select) -> Result<(), String> {
        self.known_tables(select)?;
        one_row(select)?;
        distinct_names(select)?;
        let from = self.own_tables(select);
        grouped(select, &|column| match &from {
            Some(from) => from
                .iter()
                .any(|table| self.tables.values(table, column).is_some()),
            None => true,
        })?;
        match from {
            Some(from) => compared(select, &|column| {
                let mut all = from
                    .iter()
                    .filter_map(|table| self.tables.values(table, column));
                let known = all.next()?;
                all.all(|other| other == known).then_some(known)
            }),
            None => Ok(()),
        }
    }

    fn known_tables(&self, select: &Select) -> Result<(), String> {
        let names = self.tables.names();
        for name in factors(select).filter_map(table) {
            if !names.contains(&name.as_str()) && !self.with.contains(&name) {
                let all = names.join(", ");
                let near = nearest(&name, names.iter().copied());
                return Err(format!("no table {name}{near}; the tables are {all}"));
            }
        }
        Ok(())
    }

    /// Returns the tables that it selects from; None if one of them is made by the query itself.
    fn own_tables(&self, select: &Select) -> Option<Vec<String>> {
        let tables: Option<Vec<String>> = factors(select).map(table).collect();
        tables.filter(|tables| !tables.iter().any(|table| self.with.contains(table)))
    }
}

fn factors(select: &Select) -> impl Iterator<Item = &TableFactor> {
    select.from.iter().flat_map(|from| {
        let joined = from.joins.iter().map(|join| &join.relation);
        std::iter::once(&from.relation).chain(joined)
    })
}

/// Returns the name of a table; None if it is a query or a function.
fn table(factor: &TableFactor) -> Option<String> {
    match factor {
        TableFactor::Table {
            name: ObjectName(parts),
            args: None,
            ..
        } => Some(parts.last()?.as_ident()?.value.clone()),
        _ => None,
    }
}

/// Sees to it that WHERE has no sums, and that HAVING has groups.
fn one_row(select: &Select) -> Result<(), String> {
    let sum = select.selection.iter().flat_map(sums).next();
    if let Some(sum) = sum {
        return Err(format!(
            "{sum} is of many rows, and WHERE is of one: put it into HAVING, after GROUP BY"
        ));
    }
    match &select.having {
        Some(having) if groups(select).is_some_and(<[Expr]>::is_empty) => Err(format!(
            "HAVING {having} is of groups, and there is no GROUP BY"
        )),
        _ => Ok(()),
    }
}

/// Sees to it that a column beside a sum is one of those that rows are grouped by.
fn grouped(select: &Select, is_known: &dyn Fn(&str) -> bool) -> Result<(), String> {
    let Some(groups) = groups(select) else {
        return Ok(());
    };
    // A group may be given by its place or by the name that the query gives it.
    let is_plain = |group: &Expr| column(group).is_some();
    if !groups.iter().all(is_plain) {
        return Ok(());
    }
    let sum = select.projection.iter().flat_map(sums).next();
    let Some(sum) = sum.or_else(|| groups.first().map(|_| "a group".to_owned())) else {
        return Ok(());
    };
    let by: BTreeSet<&str> = groups.iter().filter_map(column).collect();
    let mut bare: Vec<String> = Vec::new();
    for item in &select.projection {
        match item {
            SelectItem::ExprWithAlias { alias, .. } if by.contains(alias.value.as_str()) => {}
            SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => {
                return Err(format!(
                    "{item} is of each row, and {sum} is of many: name the columns to GROUP BY"
                ));
            }
            item => {
                for name in own_columns(item) {
                    if !by.contains(name.as_str()) && !bare.contains(&name) {
                        bare.push(name);
                    }
                }
            }
        }
    }
    match bare.first() {
        // A column that no table has is another mistake, which polars finds.
        Some(first) if bare.iter().all(|name| is_known(name)) => {
            let all = groups.iter().map(Expr::to_string);
            let all: Vec<String> = all.chain(bare.iter().cloned()).collect();
            let all = all.join(", ");
            Err(format!(
                "{first} is of each row, and {sum} is of many: add GROUP BY {all}"
            ))
        }
        _ => Ok(()),
    }
}

/// Returns the expressions by which rows are grouped; None for GROUP BY ALL.
fn groups(select: &Select) -> Option<&[Expr]> {
    match &select.group_by {
        GroupByExpr::Expressions(groups, _) => Some(groups),
        GroupByExpr::All(_) => None,
    }
}

/// Sees to it that the columns of the answer have different names.
fn distinct_names(select: &Select) -> Result<(), String> {
    let mut names = BTreeSet::new();
    for item in &select.projection {
        let name = match item {
            SelectItem::UnnamedExpr(expr) => {
                column(expr).map_or_else(|| expr.to_string(), str::to_owned)
            }
            SelectItem::ExprWithAlias { alias, .. } => alias.value.clone(),
            _ => continue,
        };
        if let Some(name) = names.replace(name) {
            return Err(format!("two columns are called {name}: name one with AS"));
        }
    }
    Ok(())
}

/// Gives names to the columns of a query that have none.
struct Name;

impl VisitorMut for Name {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        name(&mut query.body);
        // Polars finds a sum that it is to sort by only by its name.
        if let (SetExpr::Select(select), Some(order)) = (&*query.body, &mut query.order_by)
            && let OrderByKind::Expressions(order) = &mut order.kind
        {
            order
                .iter_mut()
                .for_each(|by| name_order(&select.projection, &mut by.expr));
        }
        ControlFlow::Continue(())
    }
}

fn name(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => select.projection.iter_mut().for_each(name_item),
        // The first of several SELECTs names the columns of all.
        SetExpr::SetOperation { left, right, .. } => {
            name(left);
            name(right);
        }
        _ => {}
    }
}

/// The longest text by which a column is called, bytes.
const LONGEST_NAME: usize = 100;

fn name_item(item: &mut SelectItem) {
    if let SelectItem::UnnamedExpr(expr) = item
        && column(expr).is_none()
        && !is_several(expr)
    {
        let text = expr.to_string();
        if text.len() > LONGEST_NAME {
            return;
        }
        let alias = Ident::with_quote('"', text);
        let expr = expr.clone();
        *item = SelectItem::ExprWithAlias { expr, alias };
    }
}

fn name_order(projection: &[SelectItem], by: &mut Expr) {
    let named = projection.iter().find_map(|item| match item {
        SelectItem::ExprWithAlias { expr, alias } if expr == by => Some(alias.clone()),
        _ => None,
    });
    if let Some(name) = named.filter(|_| column(by).is_none()) {
        *by = Expr::Identifier(name);
    }
}

/// Returns true for a function that stands for several columns: COLUMNS('…'), UNNEST(…).
fn is_several(expr: &Expr) -> bool {
    let Expr::Function(function) = expr else {
        return false;
    };
    let name = function.name.to_string();
    ["columns", "unnest"]
        .iter()
        .any(|several| name.eq_ignore_ascii_case(several))
}

/// Returns the name of the column that an expression is.
fn column(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Identifier(name) => Some(&name.value),
        Expr::CompoundIdentifier(names) => Some(&names.last()?.value),
        Expr::Nested(inner) => column(inner),
        _ => None,
    }
}

/// Returns true if a function itself, not what it is given, is of many rows: polars makes one value of two.
fn is_sum(function: &Function) -> bool {
    function.over.is_none()
        && sums(&function.args).is_empty()
        && sql_expr(function.to_string()).is_ok_and(|plan| becomes_one(plan) == Some(true))
}

fn becomes_one(plan: Plan) -> Option<bool> {
    let is_sum = |part: &Plan| matches!(part, Plan::Agg(_) | Plan::Len);
    if (&plan).into_iter().any(is_sum) {
        return Some(true);
    }
    let names = (&plan).into_iter().filter_map(|part| match part {
        Plan::Column(name) => Some(name.clone()),
        _ => None,
    });
    let names: BTreeSet<_> = names.collect();
    let two = names
        .into_iter()
        .map(|name| Column::new(name, [1_i64, 2]))
        .collect::<Vec<_>>();
    let two = DataFrame::new(2, two).ok().filter(|two| two.width() > 0)?;
    let one = two.lazy().select([plan]).collect().ok()?;
    Some(one.height() == 1)
}

/// Finds sums, and columns outside of them; subqueries are looked at by themselves.
#[derive(Default)]
struct Parts {
    /// How many sums and subqueries the place is in.
    within: usize,
    sums: Vec<String>,
    columns: Vec<String>,
}

impl Visitor for Parts {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.within = self.within.saturating_add(1);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.within = self.within.saturating_sub(1);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let is_outside = self.within == 0;
        match expr {
            Expr::Function(function) if is_sum(function) => {
                self.sums.extend(is_outside.then(|| expr.to_string()));
                self.within = self.within.saturating_add(1);
            }
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) if is_outside => {
                self.columns.extend(column(expr).map(str::to_owned));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if matches!(expr, Expr::Function(function) if is_sum(function)) {
            self.within = self.within.saturating_sub(1);
        }
        ControlFlow::Continue(())
    }
}

fn parts(of: &impl Visit) -> Parts {
    let mut parts = Parts::default();
    let _ = of.visit(&mut parts);
    parts
}

/// Returns the sums in an expression.
fn sums(of: &impl Visit) -> Vec<String> {
    parts(of).sums
}

/// Returns the columns that an expression takes from each row.
fn own_columns(of: &impl Visit) -> Vec<String> {
    parts(of).columns
}

/// Looks at what columns are compared with.
fn compared(of: &impl Visit, values: &dyn Fn(&str) -> Option<Values>) -> Result<(), String> {
    match of.visit(&mut Compared { values, within: 0 }) {
        ControlFlow::Break(what) => Err(what),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Compared<'v> {
    values: &'v dyn Fn(&str) -> Option<Values>,
    /// How many subqueries the place is in; they are looked at by themselves.
    within: usize,
}

impl Visitor for Compared<'_> {
    type Break = String;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<String> {
        self.within = self.within.saturating_add(1);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<String> {
        self.within = self.within.saturating_sub(1);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<String> {
        let pairs = match self.within {
            0 => pairs(expr),
            _ => Vec::new(),
        };
        let wrong = pairs.into_iter().find_map(|(name, value)| {
            let values = (self.values)(column(name)?)?;
            match value {
                Expr::Value(value) => values.differs(&name.to_string(), &value.value),
                _ => None,
            }
        });
        wrong.map_or(ControlFlow::Continue(()), ControlFlow::Break)
    }
}

/// Returns what an expression compares, the column first.
fn pairs(expr: &Expr) -> Vec<(&Expr, &Expr)> {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq, Spaceship};
    match expr {
        Expr::BinaryOp {
            left,
            op: Eq | NotEq | Lt | LtEq | Gt | GtEq | Spaceship,
            right,
        } => match column(left) {
            Some(_) => vec![(left, right)],
            None => vec![(right, left)],
        },
        Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
            vec![(left, right)]
        }
        Expr::InList { expr, list, .. } => list.iter().map(|value| (&**expr, value)).collect(),
        Expr::Between {
            expr, low, high, ..
        } => vec![(expr, low), (expr, high)],
        _ => Vec::new(),
    }
}

/// The most words that are listed.
const FEW: usize = 40;

impl Values {
    /// Returns why a column cannot be equal to a value.
    fn differs(&self, column: &str, value: &Value) -> Option<String> {
        let text = match value {
            Value::SingleQuotedString(text) => Some(text),
            Value::Number(..) => None,
            _ => return None,
        };
        match (self.ty, text) {
            ("string", None) => Some(format!("{column} is text: write '{value}'")),
            ("string", Some(text)) => {
                let words = self.words.as_ref()?;
                let is_known = words.iter().any(|word| word == text);
                let near = || match nearest(text, words.iter().map(String::as_str)) {
                    none if none.is_empty() && words.len() <= FEW => {
                        format!("; it can be {}", words.join(", "))
                    }
                    near => near,
                };
                (!is_known).then(|| format!("{column} is never '{text}'{}", near()))
            }
            ("boolean", Some(_)) => Some(format!(
                "{column} is true or false: write {column} or NOT {column}"
            )),
            (ty, Some(_)) if ty.starts_with("timestamp") => Some(format!(
                "{column} is a time: write TIMESTAMP '2026-11-27 10:00:00'"
            )),
            ("int64", Some(text)) => Some(format!("{column} is a number, and '{text}' is text")),
            _ => None,
        }
    }
}
