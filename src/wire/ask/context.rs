//! What a classifier is asked, as scripts and extensions write it.

use serde_json::{Map, Value};

/// The shape that errors show.
const SHAPE: &str = "{ state: { ... }, images?: [{ type: \"image\", data: <base64>, mimeType }], questions: \
    { <id>: { type: \"choice\", instructions, criteria: { <label>: <meaning> } } \
    | { type: \"score\", instructions, criteria: [<lowest level>, ..., <highest level>] } \
    | { type: \"bool\", instructions, criteria: { true: <meaning>, false: <meaning> } } } }";

/// Typed questions about JSON, and images.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassifierContext {
    pub state: Map<String, Value>,
    pub images: Vec<ImageBlock>,
    /// By id, in the order in which they were written.
    pub questions: Vec<(String, Question)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ImageBlock {
    /// In base64.
    pub data: String,
    pub mime_type: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    pub instructions: String,
    pub criteria: Criteria,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Criteria {
    /// One of these labels, each with its meaning.
    Choice(Vec<(String, String)>),
    /// One of these levels, lowest first.
    Score(Vec<String>),
    /// What true and false mean.
    Bool { yes: String, no: String },
}

impl ImageBlock {
    pub fn parse(block: &Value) -> Option<Self> {
        let text = |name: &str| Some(block.get(name)?.as_str()?.to_owned());
        (block.get("type")? == "image").then_some(())?;
        Some(Self { data: text("data")?, mime_type: text("mimeType")? })
    }

    pub fn url(&self) -> String {
        format!("data:{};base64,{}", self.mime_type, self.data)
    }
}

impl ClassifierContext {
    /// Reads a context. The error names what is wrong, and the shape that is expected.
    pub fn parse(context: &Value) -> Result<Self, String> {
        parse(context).map_err(|problem| {
            format!("models.classify(): {problem}. The context is {SHAPE}. See: pi docs codemode")
        })
    }
}

fn parse(context: &Value) -> Result<ClassifierContext, String> {
    let Value::Object(fields) = context else {
        return Err("the second argument must be an object".into());
    };
    let Some(Value::Object(state)) = fields.get("state") else {
        return Err("context.state must be an object".into());
    };
    let images = match fields.get("images") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(images)) => {
            let image = |(at, image)| {
                ImageBlock::parse(image).ok_or_else(|| format!("context.images[{at}] must be an image block"))
            };
            images.iter().enumerate().map(image).collect::<Result<_, _>>()?
        }
        Some(_) => return Err("context.images must be a list".into()),
    };
    let questions = fields.get("questions").and_then(Value::as_object);
    let Some(questions) = questions.filter(|questions| !questions.is_empty()) else {
        return Err("context.questions must have a question by its id".into());
    };
    let question = |(id, question): (&String, &Value)| Ok((id.clone(), parse_question(id, question)?));
    let questions = questions.iter().map(question).collect::<Result<_, String>>()?;
    Ok(ClassifierContext { state: state.clone(), images, questions })
}

fn parse_question(id: &str, question: &Value) -> Result<Question, String> {
    let at = format!("context.questions.{id}");
    let text = |name: &str| question.get(name).and_then(Value::as_str).map(str::to_owned);
    let instructions = text("instructions").ok_or_else(|| format!("{at}.instructions must be a string"))?;
    let criteria = question.get("criteria").unwrap_or(&Value::Null);
    let string = |value: &Value| value.as_str().map(str::to_owned);
    let kind = text("type").unwrap_or_default();
    let criteria = match kind.as_str() {
        "choice" => criteria.as_object().filter(|labels| !labels.is_empty()).and_then(|labels| {
            let label = |(label, meaning): (&String, &Value)| Some((label.clone(), string(meaning)?));
            labels.iter().map(label).collect::<Option<_>>().map(Criteria::Choice)
        }),
        "score" => criteria
            .as_array()
            .filter(|levels| !levels.is_empty())
            .and_then(|levels| levels.iter().map(string).collect::<Option<_>>().map(Criteria::Score)),
        "bool" => {
            let meaning = |name: &str| criteria.get(name).and_then(string);
            meaning("true").zip(meaning("false")).map(|(yes, no)| Criteria::Bool { yes, no })
        }
        _ => return Err(format!("{at}.type must be \"choice\", \"score\" or \"bool\"")),
    };
    let criteria = criteria.ok_or_else(|| {
        let wanted = match kind.as_str() {
            "choice" => "labels with their meanings",
            "score" => "a list of levels, lowest first",
            _ => "what true and false mean",
        };
        format!("{at}.criteria of a \"{kind}\" must be {wanted}")
    })?;
    Ok(Question { instructions, criteria })
}
